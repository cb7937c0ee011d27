#include "costmodel/estimate/peak_place.hpp"

#include <doctest/doctest.h>

#include "costmodel/estimate/evaluator.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace peak_place_test {

using namespace costmodel;

namespace {

PeakPlace place_of(const std::string& training, const std::string& plan,
                   const std::string& devices = "1") {
  const Scenario s = scenarios::read(
      "model: gpt2-large\ncluster: {base: dgx-a100, devices: " + devices +
      "}\ntraining: {global_batch: 16, sequence: 1024, " + training + "}\nplan: {" + plan + "}\n");
  Evaluator evaluator(s.model, s.cluster, s.training);
  return evaluator.peak_place(evaluator.estimate(resolve_plan(s)));
}

const std::string megatron = "stack: megatron-core-2026";

}  // namespace

TEST_CASE("with every layer recomputed, the loss of a large vocabulary is where the peak is") {
  const PeakPlace peak = place_of(megatron + ", loss: unfused", "micro_batch: 8, recompute: full");
  CHECK(peak.layer == "head");
  CHECK(peak.op == "cross-entropy");
  CHECK(peak.working.value > 0);
}

TEST_CASE("attention that is not fused keeps its scores, b a s^2 of each layer") {
  const PeakPlace peak = place_of("stack: {base: megatron-core-2026, attention: unfused}",
                                  "micro_batch: 4, recompute: none");
  // 36 layers, 20 heads, 1,024 tokens, 16 bits: one of the tensors of this size.
  CHECK(peak.kept.value == 36.0 * 4 * 20 * 1024 * 1024 * 2);
  // Recomputing attention gives it up.
  const PeakPlace less = place_of("stack: {base: megatron-core-2026, attention: unfused}",
                                  "micro_batch: 4, recompute: selective");
  CHECK(less.kept < peak.kept);
  CHECK(less.tensor != peak.tensor);
}

TEST_CASE("the stage is the fullest; in a pipeline of equal stages the first, which holds most") {
  const PeakPlace peak = place_of(megatron, "pp: 4, micro_batch: 2, recompute: none", "4");
  CHECK(peak.stage == 0);
  CHECK(peak.layer != "head");
  CHECK(peak.known());
}

TEST_CASE("no tensor takes more than the activations, wherever its chunk lies") {
  for (const std::string schedule :
       {"schedule: 1f1b", "schedule: interleaved, vpp: 3",
        "schedule: interleaved, vpp: 2, stage_layers: [5, 5, 5, 5, 5, 5, 5, 1]",
        "schedule: interleaved, vpp: 3, micro_batch_group: 8"}) {
    const Scenario s = scenarios::read(
        "model: gpt2-large\ncluster: {base: dgx-a100, devices: 4}\ntraining: {global_batch: 16, "
        "sequence: 1024, " +
        megatron + ", loss: unfused}\nplan: {pp: 4, micro_batch: 1, recompute: full, " + schedule +
        "}\n");
    Evaluator evaluator(s.model, s.cluster, s.training);
    const Estimate e = evaluator.estimate(resolve_plan(s));
    const PeakPlace peak = evaluator.peak_place(e);
    CHECK_MESSAGE(peak.kept <= e.memory[static_cast<std::size_t>(peak.stage)].activations,
                  schedule);
    CHECK_MESSAGE(peak.kept.value > 0, schedule);
  }
}

TEST_CASE("a peak in the optimizer's step is of no layer, and the trace finds it there") {
  const auto s = scenarios::read(
      "model: {base: mixtral-8x7b, layers: 2}\ncluster: {base: dgx-h100, devices: 8}\ntraining: "
      "{global_batch: 8, sequence: 128, stack: megatron-bridge}\nplan: {dp: 8, ep: 8, "
      "micro_batch: 1, zero: 1}\n");
  Evaluator evaluator(s.model, s.cluster, s.training);
  const Estimate e = evaluator.estimate(resolve_plan(s));
  const PeakPlace peak = evaluator.peak_place(e);
  CHECK(peak.known());
  CHECK(peak.layer.empty());
  CHECK(peak.pass == "step");
  const MemoryTrace trace = evaluator.memory_trace(e.plan);
  CHECK(trace.samples.at(trace.peak).pass == MemorySample::Pass::step);
  double exact = 0;  // without what the allocator rounds
  for (const Bytes held : trace.samples.at(trace.peak).held) exact += held.value;
  const double bound = evaluator.counted_peak(e).allocated.value;
  CHECK(exact <= bound * 1.0005);
  CHECK(exact >= bound * 0.99);
}

}  // namespace peak_place_test
