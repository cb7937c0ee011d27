// How many devices, sequences and tokens it takes, or may be.
#include "planner/diagnosis/size_changes.hpp"

#include <doctest/doctest.h>

#include <string>

#include "tests/costmodel/support/scenarios.hpp"

namespace size_changes_test {

using costmodel::Scenario;
using planner::Attempts;
using planner::Settings;
using scenarios::read;

namespace {

// What one of the changes records, and what it tries in vain.
planner::Diagnosis changed(const Scenario& s, void (*change)(const Scenario&, Attempts&)) {
  const planner::OtherStacks none;
  const std::function<bool()> never;
  Attempts attempts{{}, never, none, s.plan};
  change(s, attempts);
  CHECK(attempts.remedies.size() <= 1);
  return attempts;
}

Scenario llama(int devices, const std::string& training) {
  return read("model: llama-3-8b\ncluster: {base: dgx-h100, devices: " + std::to_string(devices) +
              "}\ntraining: {stack: megatron-core-2026, " + training + "}\n");
}

}  // namespace

TEST_CASE("the fewest devices are named, on a part of the first node too") {
  const auto more = changed(llama(1, "global_batch: 60, sequence: 2048"), planner::more_devices);
  REQUIRE(more.remedies.size() == 1);
  CHECK(more.remedies.front().what == "2 devices instead of 1");
  CHECK(more.remedies.front().settings == Settings{"cluster.devices=2"});
}

TEST_CASE("what 64 times the devices do not hold, devices do not mend") {
  const Scenario s = read(
      "model: gpt3-175b\ncluster: {base: dgx-v100, devices: 1}\n"
      "training: {global_batch: 64, sequence: 2048, precision: fp16, stack: megatron-2020}\n"
      "plan: {tp: 1, pp: 1, zero: 0}\n");
  const auto more = changed(s, planner::more_devices);
  CHECK(more.remedies.empty());
  CHECK(more.tried == std::vector<std::string>{"up to 64 times the devices"});
}

TEST_CASE("fewer devices are the most that the batch can be dealt to") {
  const auto fewer = changed(llama(48, "global_batch: 64, sequence: 2048"), planner::fewer_devices);
  REQUIRE(fewer.remedies.size() == 1);
  CHECK(fewer.remedies.front().settings == Settings{"cluster.devices=40"});  // five nodes of six
}

TEST_CASE("another batch is the nearest that the replicas divide") {
  Scenario s = llama(8, "global_batch: 61, sequence: 2048");
  s.plan.tp = 2;
  s.plan.pp = 1;
  s.plan.micro_batch = 1;
  s.plan.dp = 4;
  const auto batch = changed(s, planner::nearest_batch);
  REQUIRE(batch.remedies.size() == 1);
  CHECK(batch.remedies.front().settings == Settings{"training.global_batch=60"});
}

TEST_CASE("a sequence is halved as often as it takes") {
  const Scenario s = read(
      "model: llama-3-8b\ncluster: {base: dgx-h100, devices: 8}\n"
      "training: {global_batch: 8, sequence: 131072, stack: megatron-core-2026}\n"
      "plan: {tp: 8, pp: 1, cp: 1, micro_batch: 1, recompute: none}\n");
  const auto half = changed(s, planner::half_sequence);
  REQUIRE(half.remedies.size() == 1);
  const std::string& what = half.remedies.front().what;
  CHECK(what.ends_with(" instead of 131072"));
  const std::int64_t length = std::stoll(what.substr(std::string("sequence ").size()));
  CHECK(131072 % length == 0);
  // Twice of it does not fit.
  Scenario longer = s;
  longer.training.sequence = 2 * length;
  const planner::OtherStacks none;
  const std::function<bool()> never;
  const Attempts attempts{{}, never, none, s.plan};
  CHECK((2 * length == 131072 || !planner::best_plan_of(longer, attempts)));
}

}  // namespace size_changes_test
