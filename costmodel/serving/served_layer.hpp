// What one device of a replica does in a step, layer by layer: the op list of training's forward
// pass with the shapes of serving. Attention is left to step_time, for its keys are cached; the
// collectives too, for engines sum both branches of a layer with one all-reduce each.
#pragma once

#include <vector>

#include "costmodel/operators/transformer.hpp"
#include "costmodel/serving/serving_spec.hpp"

namespace costmodel {

// rows x inner times inner x columns; of `held` matrices of these sizes `read` are used in the
// step, among which the rows are shared out.
struct ServedProduct {
  double rows = 0, columns = 0, inner = 0;
  double held = 1, read = 1;
  bool expert = false;
  bool narrow = false;  // its weights have the scenario's format, else 16 bits
  double weights() const { return held * columns * inner; }
};

struct ServedLayer {
  std::vector<ServedProduct> products;
  Bytes streamed;            // by element-wise kernels
  int kernels = 0;           // of them
  double other_weights = 0;  // norms, tables: of 16 bits
};

// The expected number of distinct experts that `tokens` tokens choose, each `chosen` of `experts`
// at random: E · (1 - (1 - k/E)^n).
double distinct_experts(double experts, double chosen, double tokens);

// One layer of `kind` for `tokens` tokens of a replica. Experts: up to ep
// = tp a device has 1/ep of them and of each ep/tp; with ep = tp · dp the tokens of all replicas
// meet on its share. `format`: of its weights.
ServedLayer served_layer(LayerKind kind, const ModelSpec& model, const ServingSizes& sizes,
                         double tokens, WeightFormat format = WeightFormat::bf16);

// The layers of a model by kind.
struct ServedStack {
  double dense = 0, sparse = 0;
  double layers() const { return dense + sparse; }
};
ServedStack stack_of(const ModelSpec& model);

// Of a layer, and of all of them by number: a window makes a kind of its own where its layers have
// other sizes.
LayerKind served_kind(const ModelSpec& model, std::int64_t layer);
struct ServedLayers {
  LayerKind kind;
  double number = 0;
};
std::vector<ServedLayers> served_layers(const ModelSpec& model);

}  // namespace costmodel
