// What the ranks of a replica execute and send in a step: the op lists of training's forward pass
// with serving's shapes, sampling in place of the loss, and the bytes of every message.
// served_layer prices the lists, and runtime/serving executes them.
#pragma once

#include <cstdint>

#include "costmodel/cost/collective.hpp"
#include "costmodel/operators/transformer.hpp"
#include "costmodel/serving/serving_spec.hpp"

namespace costmodel {

// A pass: `tokens` tokens of each of `sequences` sequences.
struct ServedShape {
  std::int64_t sequences = 1, tokens = 1;
  std::int64_t rows() const { return sequences * tokens; }
  auto operator<=>(const ServedShape&) const = default;
};

// The op list of a layer on one tensor rank; the head ends with the rank's logits. `element`: bytes
// of an element of hidden states.
OpList served_list(LayerKind kind, const ModelSpec& model, int tp, const ServedShape& shape,
                   double element);

// The layers of a stage. Those that are left over go to the stages before the last, the latest
// first (vLLM, distributed/utils.py, get_pp_indices).
struct ServedStage {
  std::int64_t first_layer = 0, layers = 0;
  bool first = true, last = true;
};
ServedStage served_stage(const ModelSpec& model, int pp, int stage);

// Messages: the hidden states that an all-reduce sums; the logits of `rows` rows that all tensor
// ranks hold after an all-gather; what a tensor rank of a stage passes on to the next stage.
inline Bytes hidden_states(const ModelSpec& model, double tokens, double element) {
  return Bytes(tokens * static_cast<double>(model.hidden) * element);
}
inline Bytes gathered_logits(double columns, double rows, double element) {
  return Bytes(rows * columns * element);
}
Bytes passed_on(const ModelSpec& model, const EngineSpec& engine, int tp, double tokens,
                double element);

}  // namespace costmodel
