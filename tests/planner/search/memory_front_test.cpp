#include "planner/search/device_front.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "costmodel/estimate/evaluator.hpp"
#include "planner/search/grid_search.hpp"
#include "planner/search/search_space.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace memory_front_test {

using costmodel::Estimate;
using costmodel::Evaluator;
using costmodel::Scenario;
using planner::memory_front;
using scenarios::read;

namespace {

const char* const dense =
    "model: {kind: llama, layers: 16, hidden: 2048, heads: 16, kv_heads: 4, ffn_hidden: 8192, "
    "vocab: 32000}\ncluster: {base: dgx-h100, devices: 8}\n"
    "training: {global_batch: 32, sequence: 4096, stack: megatron-core-2026}\n";
const char* const experts =
    "model: {kind: moe, layers: 8, hidden: 1024, heads: 16, ffn_hidden: 4096, vocab: 32000, "
    "experts: 8, top_k: 2, expert_ffn_hidden: 2048}\ncluster: {base: dgx-h100, devices: 8}\n"
    "training: {global_batch: 32, sequence: 4096, stack: megatron-core-2025}\n";
const char* const pattern =
    "model: {kind: hybrid, layer_pattern: MM*-MEM*-M, hidden: 1024, heads: 16, ssm_groups: 4, "
    "ffn_hidden: 4096, experts: 8, top_k: 2, vocab: 32000}\n"
    "cluster: {base: dgx-a100, devices: 8}\n"
    "training: {global_batch: 16, sequence: 2048, stack: zero-bubble-fork}\n";

const planner::SearchMethod even{.reach = planner::Reach::even};

std::vector<Estimate> front_of(const Scenario& s) {
  const auto best = planner::chosen_plan(s, even);
  REQUIRE(best);
  return memory_front(s, *best, even);
}

// Seconds and bytes of all plans.
std::vector<std::pair<double, double>> all_of(const Scenario& s) {
  Evaluator evaluator(s.model, s.cluster, s.training);
  std::vector<std::pair<double, double>> plans;
  for (const auto& family : planner::enumerate(s).families) {
    for (const auto& plan : planner::members(family, s)) {
      const double peak = evaluator.cost(plan).peak.value;
      plans.emplace_back(evaluator.iteration_time(plan).value, peak);
    }
  }
  return plans;
}

// Infinite where no plan needs so little.
double fastest_within(double bytes, const std::vector<std::pair<double, double>>& plans) {
  double best = std::numeric_limits<double>::infinity();
  for (const auto& [time, peak] : plans) best = peak <= bytes ? std::min(best, time) : best;
  return best;
}

}  // namespace

TEST_CASE("each plan of the front is the fastest of all that need no more") {
  for (const char* yaml : {dense, experts, pattern}) {
    CAPTURE(std::string(yaml));
    Scenario s = read(yaml);
    s.search.simpler_within = 0;
    const auto front = front_of(s);
    const auto plans = all_of(s);
    REQUIRE(front.size() >= 3);
    CHECK(front.front().iteration.value == fastest_within(planner::memory_limit(s).value, plans));
    for (std::size_t i = 1; i <= planner::front_shares.size(); ++i) {
      const double limit = std::min(front.front().peak.value * planner::front_shares.at(i - 1),
                                    front.at(i - 1).peak.value * (1 - planner::least_saving));
      const double fastest = fastest_within(limit, plans);
      if (i == front.size()) {
        CHECK(fastest == std::numeric_limits<double>::infinity());
        break;
      }
      CHECK(front[i].iteration.value == fastest);
      CHECK(front[i].iteration > front[i - 1].iteration);
      CHECK(front[i].peak.value <= limit);
      CHECK(fastest_within(front[i].peak.value, plans) == fastest);
    }
  }
}

TEST_CASE("where simpler plans are chosen each is within one per cent of the fastest") {
  const Scenario s = read(experts);
  const auto plans = all_of(s);
  for (const Estimate& row : front_of(s))
    CHECK(row.iteration.value <= 1.01 * fastest_within(row.peak.value, plans));
}

TEST_CASE("a row is what the search finds with so much memory") {
  Scenario s = read(experts);
  s.search.simpler_within = 0;
  for (const Estimate& row : front_of(s)) {
    Scenario less = s;
    less.search.memory_margin = 1 - row.peak / s.cluster.device.memory * (1 + 1e-9);
    Evaluator evaluator(less.model, less.cluster, less.training);
    const auto found = planner::search(less, evaluator);
    REQUIRE(!found.plans.empty());
    CHECK(found.plans.front().plan == row.plan);
    CHECK(found.plans.front().iteration == row.iteration);
  }
}

TEST_CASE("the margin of the scenario holds, and a plan that nothing undercuts stands alone") {
  const Scenario s = read(std::string(dense) + "search: {memory_margin: 0.6}\n");
  for (const Estimate& row : front_of(s)) CHECK(row.peak <= planner::memory_limit(s));
  const Scenario fixed = read(std::string(dense) +
                              "plan: {tp: 2, pp: 2, cp: 1, vpp: 1, zero: 1, micro_batch: 1, "
                              "recompute: full, sequence_parallel: true}\n");
  CHECK(front_of(fixed).size() == 1);
}

TEST_CASE("a front that is stopped has the rows that are proved") {
  const Scenario s = read(experts);
  const auto whole = front_of(s);
  CHECK(memory_front(s, whole.front(), even, [] { return true; }).size() == 1);
  int all = 0;
  memory_front(s, whole.front(), even, [&] { return ++all < 0; });
  int asked = 0;
  const auto part = memory_front(s, whole.front(), even, [&] { return ++asked > all - 1; });
  REQUIRE(part.size() == whole.size() - 1);
  for (std::size_t i = 0; i < part.size(); ++i) CHECK(part[i].plan == whole[i].plan);
}

}  // namespace memory_front_test
