// The memory of a rank allocation by allocation, held against the closed forms that searches use.
#include "costmodel/estimate/memory_trace.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "costmodel/estimate/evaluator.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace memory_trace_test {

using namespace costmodel;

namespace {

struct Both {
  MemoryTrace trace;
  CountedPeak counted;
  Estimate estimate;
  CountedPeak bound;  // by the closed form
};

Both both_of(const std::string& model, const std::string& cluster, const std::string& training,
             const std::string& plan) {
  const Scenario s = scenarios::read("model: " + model + "\ncluster: " + cluster + "\ntraining: {" +
                                     training + "}\nplan: {" + plan + "}\n");
  Evaluator evaluator(s.model, s.cluster, s.training);
  const Estimate e = evaluator.estimate(resolve_plan(s));
  return {evaluator.memory_trace(e.plan), evaluator.counted_peak(e), e,
          evaluator.counted_by_stack(e)};
}

}  // namespace

TEST_CASE("the closed form is no less than what is allocated one after the other, and close") {
  const std::string one = "{base: dgx-h100, devices: 1, devices_per_node: 1}";
  const std::string eight = "{base: dgx-h100, devices: 8}";
  const struct {
    std::string model, cluster, training, plan;
    double slack;  // stages hold what is sent, which a pipeline's trace frees at once
  } cases[]{
      {"llama-3.2-1b", one, "global_batch: 1, sequence: 8192, stack: torchtitan",
       "micro_batch: 1, zero: 3", 0.005},
      {"llama-3.2-1b", one, "global_batch: 4, sequence: 4096, stack: torchtitan",
       "micro_batch: 1, zero: 3, recompute: full", 0.005},
      {"llama-3-8b", eight, "global_batch: 16, sequence: 8192, stack: torchtitan",
       "dp: 8, micro_batch: 2, zero: 3, recompute: full", 0.005},
      {"llama-3.2-1b", one, "global_batch: 8, sequence: 2048, stack: peft",
       "micro_batch: 8, recompute: full", 0.005},
      {"llama-3-8b", eight, "global_batch: 16, sequence: 4096, stack: megatron-core-2025",
       "tp: 4, dp: 2, micro_batch: 1, zero: 1, sequence_parallel: true", 0.005},
      {"llama-3-8b", eight, "global_batch: 16, sequence: 4096, stack: megatron-core-2025",
       "tp: 2, pp: 4, micro_batch: 1, zero: 1, sequence_parallel: true", 0.03},
      {"llama-3-8b", eight, "global_batch: 16, sequence: 4096, stack: megatron-core-2025",
       "tp: 2, pp: 4, vpp: 2, schedule: interleaved, micro_batch: 1, sequence_parallel: true",
       0.03},
      {"llama-3-8b", eight, "global_batch: 32, sequence: 4096, stack: megatron-core-2025",
       "tp: 2, pp: 4, micro_batch: 1, schedule: gpipe, recompute: full, sequence_parallel: true",
       0.03},
      {"llama-3.2-3b", eight,
       "global_batch: 8, sequence: 2048, stack: torchtitan, overlap: {compile: true}",
       "dp: 8, micro_batch: 1, zero: 3", 0.03},
      {"llama-3.2-3b", one, "global_batch: 1, sequence: 512, stack: torchtitan", "micro_batch: 1",
       0.03},
      {"{base: llama-3-8b, layers: 6}", eight,
       "global_batch: 16, sequence: 4096, stack: megatron-core-2025",
       "tp: 4, pp: 2, vpp: 2, schedule: interleaved, micro_batch: 1, stage_layers: [4, 1, 0, 1], "
       "sequence_parallel: true",
       0.05},  // a virtual stage without layers
  };
  for (const auto& own : cases) {
    CAPTURE(own.model);
    CAPTURE(own.training);
    CAPTURE(own.plan);
    const Both both = both_of(own.model, own.cluster, own.training, own.plan);
    REQUIRE(both.trace.known());
    const double exact = both.trace.allocated.value, bound = both.bound.allocated.value;
    CHECK(exact <= bound * 1.0005);  // requests are rounded to 512 bytes
    CHECK(exact >= bound * (1 - own.slack));
    CHECK(both.trace.reserved >= both.trace.allocated);
  }
}

TEST_CASE("an allocator that does not split a block counts all of it: states of small experts") {
  // Products of 11 and 5.5 MiB in bf16: moments of 11 MiB and masters of 11 MiB take 12.
  const auto rounded = [](const char* more) {
    const Both both = both_of(
        "{base: mixtral-8x7b, layers: 8, experts: 64, top_k: 6, hidden: 2048, "
        "heads: 16, kv_heads: 16, expert_ffn_hidden: 1408}",
        "{base: dgx-h100, devices: 8}",
        std::string("global_batch: 8, sequence: 1024, moment_precision: bf16, "
                    "stack: {base: megatron-bridge") +
            more + "}",
        "dp: 8, ep: 8, micro_batch: 1, zero: 1");
    return (both.counted.allocated - both.bound.allocated).value / (1 << 20);
  };
  const double matrices = 8 * 8 * 2;
  CHECK(rounded("") > matrices);  // a MiB at least
  CHECK(rounded("") <= 2 * matrices + 64);
  CHECK(rounded(", memory: {expandable_segments: true}") < 8);
}

TEST_CASE("samples follow each other, hold what their kinds add up to, and the peak is the most") {
  const Both both =
      both_of("llama-3.2-1b", "{base: dgx-h100, devices: 1, devices_per_node: 1}",
              "global_batch: 2, sequence: 2048, stack: torchtitan", "micro_batch: 1, zero: 3");
  const auto& samples = both.trace.samples;
  REQUIRE(samples.size() == 2 * 2 * 18 + 1);  // 16 layers, embedding and head; and the step
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (i > 0) CHECK(samples[i].begin == samples[i - 1].end);
    Bytes sum;
    for (const Bytes held : samples[i].held) sum += held;
    CHECK(sum <= samples[i].allocated);
    CHECK(sum.value >= samples[i].allocated.value * 0.999);
    CHECK(samples[i].allocated <= samples[both.trace.peak].allocated);
  }
  CHECK(samples[both.trace.peak].allocated == both.trace.allocated);
}

TEST_CASE("gradients that are freed with the step do not meet all activations") {
  const auto gradients = [](const char* more) {
    return both_of("llama-3.2-1b", "{base: dgx-h100, devices: 1, devices_per_node: 1}",
                   std::string("global_batch: 1, sequence: 8192, stack: ") + more,
                   "micro_batch: 1, zero: 3")
        .estimate.memory.front();
  };
  const StageMemory freed = gradients("torchtitan"),
                    kept = gradients("{base: torchtitan, frees_gradients: false}");
  CHECK(freed.gradients.value == 0);
  CHECK(kept.gradients.value == doctest::Approx(1.2358144e9 * 4).epsilon(1e-3));
  CHECK(freed.total() < kept.total());
}

TEST_CASE("casts that autocast keeps are of fp32 weights: without any, weights stay") {
  const auto weights = [](const char* training) {
    return both_of("llama-3.2-1b", "{base: dgx-h100, devices: 1, devices_per_node: 1}",
                   std::string("global_batch: 4, sequence: 2048, ") + training,
                   "micro_batch: 1, recompute: full")
        .estimate.memory.front()
        .weights.value;
  };
  const double parameters = 1.2358144e9, head = 128256.0 * 2048;
  CHECK(weights("stack: peft, precision: bf16") == doctest::Approx(2 * head).epsilon(1e-3));
  CHECK(weights("stack: peft, precision: fp32") == doctest::Approx(4 * parameters).epsilon(1e-3));
  CHECK(weights("stack: {base: peft, master_weights: false}, precision: bf16") ==
        doctest::Approx(2 * parameters).epsilon(1e-3));
}

TEST_CASE("where the reserve does not fit, cached blocks are given back") {
  const auto counted = [](const char* device) {
    return both_of("llama-3.2-1b",
                   std::string("{base: dgx-h100, devices: 1, devices_per_node: 1") + device + "}",
                   "global_batch: 1, sequence: 8192, stack: torchtitan", "micro_batch: 1, zero: 3")
        .counted;
  };
  const CountedPeak large = counted(""),
                    small = counted(", device: {base: h100-sxm5-80gb, memory: {bytes: 46 GB}}");
  CHECK_FALSE(large.retries());
  CHECK(large.wanted == large.reserved);
  CHECK(small.retries());
  CHECK(small.wanted == large.wanted);
  CHECK(small.allocated == large.allocated);
  CHECK(small.reserved < Bytes(46e9));
}

TEST_CASE("nothing is known of schedules that split backward") {
  CHECK_FALSE(both_of("llama-3-8b", "{base: dgx-h100, devices: 8}",
                      "global_batch: 16, sequence: 4096, stack: zero-bubble-fork",
                      "tp: 2, pp: 4, micro_batch: 1, schedule: zero-bubble-h1")
                  .trace.known());
}

}  // namespace memory_trace_test
