// One rank of a replica serves a batch of prompts: it prefills them, then decodes a token of each
// request a round, with its keys and values in blocks. The most likely token is taken. A replica
// has tp x pp ranks, rank = (replica · pp + pp_rank) · tp + tp_rank, as vLLM lays them out; with pp
// stages the batch is cut into pp parts that follow one another through them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "runtime/backend/transport.hpp"
#include "runtime/serving/forward_pass.hpp"
#include "runtime/serving/kv_cache.hpp"
#include "runtime/serving/served_batch.hpp"
#include "runtime/serving/served_measurement.hpp"

namespace runtime {

// The same on all ranks.
struct ServedJob {
  costmodel::ModelSpec model;  // without dropout
  costmodel::EngineSpec engine;
  costmodel::ServingSizes sizes;
  ServedBatch batch;  // of each replica
  std::int64_t block_size = 16;
  std::vector<std::int64_t> prompts;  // [dp · requests][input]
  std::uint64_t seed = 1;             // of the weights
  std::size_t memory_limit = 0;       // bytes; 0: none
};

// Prompts that depend on the seed alone, not on the plan.
std::vector<std::int64_t> drawn_prompts(std::uint64_t seed, std::int64_t requests,
                                        std::int64_t tokens, std::int64_t vocab);

// Of each request `tokens` tokens, after `before` cached ones.
struct PassKind {
  std::int64_t tokens = 1, before = 0;
};
// Decoding at the mean length; all prompts, where a part's are one pass.
PassKind decode_pass(const ServedJob& job);
std::optional<PassKind> prefill_pass(const ServedJob& job);

class ServedRank {
 public:
  // All outlive this. Collective over the ranks. Throws OutOfMemory.
  ServedRank(const ServedJob& job, Transport& transport, Device& device);

  // Collective.
  ServedMeasurement serve();
  // After serve(): times `rounds` passes of all parts. Collective. `between` is called before each
  // part.
  PassPace timed(const PassKind& kind, int rounds, const std::function<void()>& between);

  const costmodel::ServedStage& stage() const { return stage_; }

 private:
  struct Part {
    int number = 0;
    std::int64_t first = 0, count = 0;  // requests
  };
  struct Layer {
    costmodel::LayerKind kind;
    LayerWeights weights;
  };

  void add_layer(costmodel::LayerKind kind, std::int64_t number);
  const LayerProgram& program(costmodel::LayerKind kind, const costmodel::ServedShape& shape);
  Place place(const costmodel::ServedShape& shape, std::int64_t before) const;
  Part part(int number) const;
  int rank_of(int stage) const;

  // All of this stage's layers but the head, for requests of which `before` tokens are cached.
  Block layers(const Part& part, std::int64_t tokens, std::int64_t before, Block input);
  Block logits(const Part& part, std::int64_t tokens, Block hidden);
  Block gathered(Block logits);
  void choose(const Part& part, const Block& logits);
  // A pass through this stage, from the stage before to the one after; `ends`: with the last token
  // of its text so far, so that the next one is chosen.
  void step(const Part& part, std::int64_t tokens, std::int64_t before, bool ends = true);
  void prefill(const Part& part);
  void decode(const Part& part, std::int64_t round);
  void give_back_tokens(const Part& part);
  void take_tokens(const Part& part);
  Block receive(const Part& part, std::int64_t rows);
  void pass_on(const Part& part, const Block& hidden);
  std::span<std::int64_t> next(const Part& part);

  costmodel::Seconds operators_of(const PassKind& kind, int rounds,
                                  const std::function<void()>& between);
  costmodel::Seconds collectives_of(const PassKind& kind, int rounds);
  costmodel::Seconds transfers_of(const PassKind& kind, int rounds);
  ServedMeasurement counted() const;

  const ServedJob& job_;
  Transport& transport_;
  int tp_rank_, pp_rank_, replica_;
  costmodel::ServedStage stage_;
  TrafficCount traffic_, uncounted_;
  Group tensor_group_, all_group_;
  Communicator tensor_, all_;
  Arena arena_;
  ForwardPass forward_;
  KvCache cache_;
  std::vector<Layer> layers_;
  std::map<std::pair<costmodel::LayerKind, costmodel::ServedShape>, LayerProgram> programs_;
  std::vector<std::int64_t> ids_;   // of the pass at hand, on the first stage
  std::vector<std::int64_t> next_;  // the newest token of each request
  std::vector<std::int64_t> made_;  // [requests][output], on the last stage
  std::int64_t round_ = 0;
};

}  // namespace runtime
