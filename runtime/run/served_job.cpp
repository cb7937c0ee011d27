#include "runtime/run/served_job.hpp"

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "costmodel/serving/serving_memory.hpp"
#include "costmodel/serving/serving_reader.hpp"
#include "runtime/run/supported.hpp"

namespace runtime {

using namespace costmodel;

namespace {

// The place of a key, or of the nearest map that would have it.
Mark place_of(const Value& root, const char* map, const char* key = "") {
  const Value* part = root.find(map);
  if (part == nullptr) return root.mark;
  if (!part->is_scalar())
    if (const Value* found = part->find(key)) return found->mark;
  return part->mark;
}

class Refusals {
 public:
  Refusals(const Value& root, const ServingScenario& scenario) : root_(root), s_(scenario) {}

  void check_plan() const {
    const auto& plan = s_.plan;
    refuse(!plan.tp && !plan.pp && !plan.ep && !plan.disaggregation, "plan", "",
           "plan is left open, and run executes one plan",
           "settle it first: shardplan plan SCENARIO --format yaml --out FILE");
    refuse(plan.disaggregation.has_value(), "plan", "disaggregation",
           "the runtime prefills and decodes on the same ranks", "leave plan.disaggregation out");
    refuse(plan.ep.value_or(1) > 1, "plan", "ep", "the runtime has no expert parallelism",
           "set ep: 1");
  }

  // What training's runtime lacks, serving's does too.
  void check_model(const ServingSizes& sizes) const {
    TrainingSpec training;
    training.stack.collectives.embedding_all_reduce = true;
    ParallelPlan plan;
    plan.tp = sizes.tp;
    for (const auto& fault : unsupported(s_.model, training, plan)) {
      const bool in_plan = fault.key == "tp";
      refuse(true, in_plan ? "plan" : "model", in_plan ? "tp" : "", fault.reason, fault.remedy);
    }
    const bool learned = s_.model.positions == Positions::learned;
    refuse(learned && s_.model.max_positions == 0, "model", "max_positions",
           "the model's table of learned positions has no length", "add max_positions");
  }

  void check_serving() const {
    const auto& v = s_.serving;
    refuse(v.weights_open || bytes_of(v.weights) < 2, "serving", "weights",
           "the runtime has no quantised weights", "write weights: fp32, or bf16");
    refuse(bytes_of(v.kv_cache) < 2, "serving", "kv_cache", "the runtime has no quantised cache",
           "write kv_cache: fp32, or bf16");
    refuse(v.arrival_rate > 0, "serving", "arrival_rate",
           "run serves one batch that is there at the start",
           "write requests: 8 in place of arrival_rate");
    refuse(v.prefix_hit_share > 0, "serving", "prefix_hit_share",
           "the runtime shares no prefixes of prompts", "leave prefix_hit_share out");
    refuse(v.cpu_offload.value > 0, "serving", "cpu_offload_bytes",
           "the runtime keeps all weights on their rank", "leave cpu_offload_bytes out");
    refuse(v.decode_only, "serving", "decode_only", "the runtime prefills what it decodes",
           "leave decode_only out");
  }

  std::int64_t length(const LengthSpec& length, const char* key) const {
    refuse(length.p95 > 0 || length.most > length.least, "serving", key,
           "run serves prompts and answers of one length",
           fmt::format("write {}: {:.0f}", key, length.mean));
    refuse(length.mean != std::floor(length.mean), "serving", key,
           fmt::format("{:g} tokens are no whole number", length.mean), "write a whole number");
    return std::llround(length.mean);
  }

  std::int64_t requests(const ServingSizes& sizes) const {
    const auto& v = s_.serving;
    const char* key = v.concurrency > 0 ? "concurrency" : "requests";
    const std::int64_t all = v.concurrency > 0 ? v.concurrency : v.requests;
    refuse(all % sizes.dp != 0, "serving", key,
           fmt::format("{} requests are not shared evenly by {} replicas", all, sizes.dp),
           fmt::format("choose a multiple of {}, or plan.dp", sizes.dp));
    const std::int64_t most = v.limits.max_num_seqs * sizes.dp;
    refuse(all > most, "serving", key,
           fmt::format("run serves one batch, and {} requests exceed the {} that run at a time",
                       all, most),
           "choose fewer, or a larger max_num_seqs");
    return all / sizes.dp;
  }

  void check_batch(const ServedBatch& batch, const ServingSizes& sizes) const {
    refuse(batch.input > batch.budget && !s_.serving.limits.chunked_prefill, "serving",
           "input_tokens",
           fmt::format("prompts of {} tokens exceed a pass of {}, and are not cut", batch.input,
                       batch.budget),
           "set chunked_prefill: true, or max_num_batched_tokens higher");
    const auto memory = serving_memory(s_, sizes);
    const std::int64_t wanted = cache_blocks(batch, s_.serving.limits.block_size);
    refuse(static_cast<double>(wanted) > memory.blocks, "serving", "",
           fmt::format("the keys and values of {} requests of {} tokens take {} blocks of a "
                       "replica's cache, which has {:.0f}",
                       batch.requests, batch.cached(), wanted, memory.blocks),
           "serve fewer or shorter requests, or take more devices a replica");
  }

 private:
  void refuse(bool fault, const char* map, const char* key, const std::string& reason,
              const std::string& remedy) const {
    if (fault) throw ConfigError(place_of(root_, map, key), reason, remedy);
  }

  const Value& root_;
  const ServingScenario& s_;
};

}  // namespace

ServedJob served_job(const Value& root, const ServingScenario& s, std::uint64_t seed,
                     std::size_t memory_limit) {
  const Refusals refusals(root, s);
  refusals.check_plan();
  const ServingSizes sizes = sizes_of(s);
  refusals.check_serving();
  refusals.check_model(sizes);
  ServedJob job{.model = s.model,
                .engine = s.serving.engine,
                .sizes = sizes,
                .batch = {.requests = refusals.requests(sizes),
                          .input = refusals.length(s.serving.input, "input_tokens"),
                          .output = refusals.length(s.serving.output, "output_tokens"),
                          .budget = s.serving.limits.max_num_batched_tokens,
                          .parts = sizes.pp},
                .block_size = s.serving.limits.block_size,
                .prompts = {},
                .seed = seed,
                .memory_limit = memory_limit};
  job.model.dropout = 0;
  // The runtime's own way, whatever the engine's.
  job.engine.stage_tensors = 1;
  job.engine.splits_transfers = false;
  refusals.check_batch(job.batch, sizes);
  job.prompts = drawn_prompts(seed, job.batch.requests * sizes.dp, job.batch.input, s.model.vocab);
  return job;
}

}  // namespace runtime
