// A batch of requests that a replica serves, and what its ranks send and hold for it by the op
// lists of costmodel/serving/served_program.
#pragma once

#include <cstdint>

#include "costmodel/cost/collective.hpp"
#include "costmodel/serving/served_program.hpp"
#include "costmodel/serving/serving_spec.hpp"

namespace runtime {

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
costmodel::Traffic served_traffic(const costmodel::ModelSpec& model,
                                  const costmodel::EngineSpec& engine,
                                  const costmodel::ServingSizes& sizes, int stage,
                                  const ServedBatch& batch, double element);

// Blocks of the cache that the batch holds at its end, of `block_size` tokens.
inline std::int64_t cache_blocks(const ServedBatch& batch, std::int64_t block_size) {
  return batch.requests * costmodel::ceil_div(batch.cached(), block_size);
}

}  // namespace runtime
