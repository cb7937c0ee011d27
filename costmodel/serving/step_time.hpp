// The time of one step of a replica: some sequences decode a token each, and some prompt tokens are
// prefilled beside them.
//
// Products take max(FLOPs / rate, bytes / bandwidth), as in training (cost/device_time.hpp), with
// the weights in the scenario's format. Decoding attention reads the cached keys and values of
// every sequence; prefilling attention is bound by its products. Collectives take the time of the
// cluster's tiers, or of the engine's own all-reduce inside a node. Each kernel adds the engine's
// time of one. With pp stages the batch is cut into pp parts that follow one another through the
// stages; a step is one round of all of them.
#pragma once

#include <optional>
#include <vector>

#include "costmodel/plan/mesh.hpp"
#include "costmodel/serving/served_layer.hpp"
#include "costmodel/serving/serving_spec.hpp"

namespace costmodel {

// Sums over the sequences of a replica's step.
struct StepLoad {
  double decodes = 0;         // sequences that decode a token
  double decode_context = 0;  // cached tokens that they read
  double prefill_tokens = 0;
  double prefill_pairs = 0;  // (query, key) pairs of the prefilled tokens
  double prompts = 0;        // sequences whose prompt ends in the step
  double prefilling = 0;     // sequences of the prefilled tokens
  double tokens() const { return decodes + prefill_tokens; }
  StepLoad part(double decoding, double prompting) const;  // 1 of so many, of either
};

// (query, key) pairs of `tokens` prompt tokens after `before` cached ones, causal.
inline double prefill_pairs(double tokens, double before) {
  return tokens * before + tokens * (tokens + 1) / 2;
}

struct StepParts {
  Seconds weights;              // reading them, and nothing else
  Seconds cache;                // reading keys and values
  Seconds products;             // what products and attention take beyond those
  Seconds streams;              // element-wise kernels, and every kernel's start
  Seconds collectives;          // all-reduces, exchanges of experts
  Seconds transfers;            // between stages, and of offloaded weights from the host
  Seconds host;                 // what the device waits for
  Seconds arithmetic, reading;  // of all products and attention alone: which one bounds them
  // Stages are filled by parts of a step, but each prompt passes them in one of these: what that
  // takes beyond the step. Not in total().
  Seconds passing;
  double kernels = 0;  // that the host launches, one after the other, where no graph does
  Seconds total() const {
    return weights + cache + products + streams + collectives + transfers + host;
  }
  StepParts& add(const StepParts& o, double times);
};

class StepTimes {
 public:
  // Everything must outlive this. Throws InternalError for sizes with a fault (sizes_fault).
  StepTimes(const ModelSpec& model, const ClusterSpec& cluster, const ServingSpec& serving,
            const ServingSizes& sizes);

  StepParts of(const StepLoad& load) const;

  double stages() const { return sizes_.pp; }

  // Time of an all-reduce of `tokens` hidden states over the tensor ranks, and how many a pass has.
  Seconds all_reduce(double tokens) const;
  double all_reduces() const;
  Bytes weights_held() const { return held_; }  // on the fullest device

 private:
  // Prices at the grid's token counts, computed when first asked for.
  using Grid = std::vector<std::optional<StepParts>>;
  StepParts priced(double tokens) const;  // all layers and the embedding
  StepParts priced_head(double rows) const;
  StepParts between(Grid& grid, double tokens, StepParts (StepTimes::*price)(double) const) const;
  void add_layer(LayerKind kind, double layers, double tokens, StepParts& sum) const;
  void add_product(const ServedProduct& p, double times, StepParts& sum) const;
  void add_exchange(double tokens, StepParts& sum) const;
  const EngineConstants& constants() const { return serving_.engine.constants; }
  // Of a token's query in all layers, where it attends to `mean` keys without a window; one of a
  // layer with a window counts as `of_window`.
  double keys_read(double mean, double of_window) const;
  StepParts part_of_batch(const StepLoad& load) const;  // all stages, one after the other
  Seconds pass_of_prompt(const StepLoad& load) const;
  Seconds passing_on(const StepLoad& part) const;  // from a stage to the next

  ModelSpec model_;
  const ClusterSpec& cluster_;
  const ServingSpec& serving_;
  ServingSizes sizes_;
  ServedStack stack_;
  double windows_ = 0, chunks_ = 0;  // layers that attend in windows, in chunks
  GroupLayout tensor_, experts_;
  BytesPerSecond weight_rate_, cache_rate_;
  Bytes held_;
  mutable Grid layers_, heads_;
};

}  // namespace costmodel
