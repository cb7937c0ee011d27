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

// A batch that a replica serves from the first prompt to the last token: `requests` prompts of
// `input` tokens, each answered by `output` tokens, the most likely ones.
struct ServedBatch {
  std::int64_t requests = 1, input = 1, output = 1;
  // Tokens of a pass that prefills: whole prompts as far as they go, and a prompt that alone
  // exceeds it in chunks (Sarathi, Agrawal et al. 2023, arXiv:2308.16369).
  std::int64_t budget = 1;
  int parts = 1;  // that follow one another through the stages: pp
  // Requests of part `i`, which are requests first(i) to first(i + 1).
  std::int64_t first(int i) const { return requests * i / parts; }
  std::int64_t cached() const { return input + output - 1; }  // tokens of a request at the end
};

// Sent by one device of `stage` for the whole batch, mean over the stage's tensor ranks: the
// collectives of the op lists, the logits, what is passed on and returned. `columns`: of the logits
// that the engine gathers.
Traffic served_traffic(const ModelSpec& model, const EngineSpec& engine, const ServingSizes& sizes,
                       int stage, const ServedBatch& batch, double element);

// Blocks of the cache that the batch holds at its end, of `block_size` tokens.
inline std::int64_t cache_blocks(const ServedBatch& batch, std::int64_t block_size) {
  return batch.requests * ceil_div(batch.cached(), block_size);
}

}  // namespace costmodel
