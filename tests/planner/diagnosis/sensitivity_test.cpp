#include "planner/diagnosis/sensitivity.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "costmodel/estimate/plan_estimate.hpp"
#include "tests/costmodel/support/scenarios.hpp"
#include "tests/planner/support/best_even.hpp"
#include "tests/sanitized.hpp"

namespace sensitivity_test {

using best_even::best_of;
using costmodel::Estimate;
using costmodel::Scenario;
using planner::InputEffect;
using planner::PlanChange;
using planner::priced_inputs;
using planner::sensitivity;
using planner::Sensitivity;
using planner::sensitivity_of_search;
using scenarios::read;

namespace {

const char* const dense =
    "model: {kind: llama, layers: 16, hidden: 2048, heads: 16, kv_heads: 4, ffn_hidden: 8192, "
    "vocab: 32000}\ncluster: {base: dgx-h100, devices: 32}\n"
    "training: {global_batch: 64, sequence: 4096, stack: megatron-core-2025}\n"
    "search: {max_vpp: 2, max_micro_batch: 2}\n";
// With the thread sanitizer few plans are tried.
const std::string on_threads =
    dense + std::string(thread_sanitized ? "plan: {tp: 2, recompute: none}\n" : "");

Scenario moved(const Scenario& s, const InputEffect& e, double value) {
  Scenario other = s;
  e.input.set(other, value);
  return other;
}

// Whether a plan that was chosen is quick enough for it in another scenario.
bool stays(const Estimate& chosen, Scenario s) {
  const Estimate there = estimate_of(s.model, s.cluster, s.training, chosen.plan);
  if (there.peak > planner::memory_limit(s)) return false;
  const double within = s.search.simpler_within;
  s.search.simpler_within = 0;
  return there.iteration <= best_of(s).iteration * (1 + within);
}

}  // namespace

TEST_CASE("each effect is that of the input alone, the largest first, none lost") {
  const Scenario s = read(dense);
  const Estimate plan = best_of(s);
  const Sensitivity found = sensitivity(s, plan, {});
  REQUIRE(found.inputs.size() > 5);
  CHECK_FALSE(found.searched);
  CHECK(found.inputs.size() + found.unmoved.size() == priced_inputs(s, {}).size());
  for (std::size_t i = 1; i < found.inputs.size(); ++i)
    CHECK(found.inputs[i - 1].effect >= found.inputs[i].effect);
  for (const InputEffect& e : found.inputs) {
    CAPTURE(e.input.key);
    const Scenario low = moved(s, e, e.input.low);
    CHECK(estimate_of(low.model, low.cluster, low.training, plan.plan).iteration == e.at_low);
    CHECK(e.effect > 0);
    CHECK_FALSE(e.below);
  }
  // A faster product is a faster iteration.
  const auto& products = *std::ranges::find_if(
      found.inputs, [](const InputEffect& e) { return e.input.key == "device.gemm.efficiency"; });
  CHECK(products.at_low > plan.iteration);
  CHECK(products.at_high < plan.iteration);
}

TEST_CASE("where the best plan changes: it is best before, and another behind") {
  const Scenario s = read(dense);
  const Estimate best = best_of(s);
  const Sensitivity found = sensitivity_of_search(s, {best}, {}, 2);
  CHECK(found.searched);
  int changes = 0;
  for (const InputEffect& e : found.inputs) {
    for (const bool up : {false, true}) {
      const std::optional<PlanChange>& change = up ? e.above : e.below;
      const double end = up ? e.input.high : e.input.low;
      CAPTURE(e.input.key);
      CAPTURE(up);
      CHECK(stays(best, moved(s, e, end)) == !(change && change->inside));
      if (!change) continue;
      ++changes;
      CHECK((up ? change->value >= e.input.value : change->value <= e.input.value));
      if (change->value != e.input.value) CHECK(stays(best, moved(s, e, change->value)));
      const double beyond = change->value * (up ? 1.02 : 1 / 1.02);
      if (change->inside || e.effect > 0.01) CHECK_FALSE(stays(best, moved(s, e, beyond)));
      REQUIRE(change->best);
      CHECK_FALSE(change->best->plan == best.plan);
      if (change->fits) CHECK(change->loss > 0);
    }
  }
  CHECK(changes > 0);
}

TEST_CASE("less memory than the plan needs: another plan, and this one no longer fits") {
  Scenario s = read(dense);
  s.search.memory_margin = 0;
  Estimate best = best_of(s);
  s.cluster.device.memory = best.peak * 1.01;  // so that 6 % less does not hold it
  best = best_of(s);
  const Sensitivity found = sensitivity_of_search(s, {best}, {}, 1);
  const auto memory = std::ranges::find_if(
      found.inputs, [](const InputEffect& e) { return e.input.key == "device.memory.bytes"; });
  REQUIRE(memory != found.inputs.end());
  CHECK(memory->effect == 0);
  REQUIRE(memory->below);
  CHECK(memory->below->inside);
  CHECK_FALSE(memory->below->fits);
  CHECK(memory->below->value == doctest::Approx(best.peak.value).epsilon(0.001));
}

TEST_CASE("the answer is the same on several threads, and stops when it is told") {
  const Scenario s = read(on_threads);
  const Estimate best = best_of(s);
  const Sensitivity one = sensitivity_of_search(s, {best}, {}, 1);
  const Sensitivity many = sensitivity_of_search(s, {best}, {}, 3);
  REQUIRE(one.inputs.size() == many.inputs.size());
  for (std::size_t i = 0; i < one.inputs.size(); ++i) {
    CHECK(one.inputs[i].input.key == many.inputs[i].input.key);
    CHECK(one.inputs[i].below.has_value() == many.inputs[i].below.has_value());
    if (one.inputs[i].below) CHECK(one.inputs[i].below->value == many.inputs[i].below->value);
  }
  CHECK_FALSE(one.interrupted);
  const Sensitivity none = sensitivity_of_search(s, {best}, {}, 2, [] { return true; });
  CHECK(none.interrupted);
  for (const InputEffect& e : none.inputs) CHECK_FALSE((e.below || e.above));
}

}  // namespace sensitivity_test
