// Devices and batches near those that divide nothing well.
#include "planner/diagnosis/better_sizes.hpp"

#include <doctest/doctest.h>

#include "planner/search/strategy.hpp"
#include "tests/costmodel/support/fixtures.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace better_sizes_test {

using costmodel::Scenario;
using fixtures::contains;
using planner::better_sizes;
using planner::Reach;

namespace {

// Llama 3.1 405B on 1,000 H100, a batch of 2,048; the limits keep the search short.
const char* const thousand =
    "model: llama-3.1-405b\ncluster: {base: dgx-h100, devices: 1000}\n"
    "training: {global_batch: 2048, sequence: 8192, stack: megatron-core-2026}\n"
    "search: {max_micro_batch: 1, max_vpp: 2, max_cp: 1, zero: [1]}\n";

}  // namespace

TEST_CASE("where only uneven stages obey the rules, sizes that divide better are faster") {
  const Scenario s = scenarios::read(thousand);
  CHECK_FALSE(planner::chosen_plan(s, {.reach = Reach::even}));
  const auto uneven = planner::chosen_plan(s);
  REQUIRE(uneven);
  const auto lines = better_sizes(s, *uneven);
  REQUIRE(lines.size() == 3);
  CHECK(contains(lines[0], "1,024 devices instead of 1,000: "));
  CHECK(contains(lines[1], " devices instead of 1,000: "));
  CHECK(contains(lines[2], "another batch: training.global_batch=20"));
  Scenario more = s;
  more.cluster = resized(s.cluster, 1024);
  const auto best = planner::chosen_plan(more, {.reach = Reach::even});
  REQUIRE(best);
  CHECK(best->tokens_per_s > 1.5 * uneven->tokens_per_s);
  CHECK(contains(lines[0], format_seconds(best->iteration)));
}

TEST_CASE("sizes that are no faster are not told, nor any once stopped") {
  const Scenario s = scenarios::read(thousand);
  const auto uneven = planner::chosen_plan(s);
  REQUIRE(uneven);
  costmodel::Estimate quick = *uneven;
  quick.tokens_per_s *= 100;
  CHECK(better_sizes(s, quick).empty());
  CHECK(better_sizes(s, *uneven, [] { return true; }).empty());
}

}  // namespace better_sizes_test
