// Replicas of a model on groups of different devices: priced by hand, and by an evaluator alone.
#include "costmodel/estimate/replica_cost.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/model/parameter_count.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace replica_cost_test {

using costmodel::ReplicaEnd;
using costmodel::ReplicaEvaluator;
using costmodel::ReplicaShare;
using costmodel::Scenario;
using costmodel::Seconds;

namespace {

Scenario read(int h100, int a100, const std::string& join = "25 GB/s") {
  return scenarios::read(
      "model: {base: gpt2-medium, layers: 8}\n"
      "training: {global_batch: 24, sequence: 1024, precision: fp16, stack: megatron-2021}\n" +
      scenarios::mixed(h100, a100, join));
}

ReplicaShare share(int tp, int pp, int dp, std::int64_t b, std::int64_t m) {
  ReplicaShare s;
  s.plan.tp = tp;
  s.plan.pp = pp;
  s.plan.dp = dp;
  s.plan.micro_batch = b;
  s.micro_batches = m;
  return s;
}

ReplicaEvaluator evaluator_of(const Scenario& s) { return {s.model, s.cluster, s.training}; }

}  // namespace

TEST_CASE("a group's replicas end as they would alone with their share of the batch") {
  const Scenario s = read(4, 2);
  ReplicaEvaluator replicas = evaluator_of(s);
  for (const ReplicaShare& mine :
       {share(2, 1, 2, 2, 4), share(1, 4, 1, 1, 5), share(1, 2, 2, 1, 9)}) {
    CHECK(replicas.is_valid(0, mine));
    costmodel::TrainingSpec training = s.training;
    training.global_batch = mine.sequences();
    costmodel::Evaluator alone(s.model, s.cluster.groups[0], training);
    const auto expected = alone.end_of(mine.plan);
    const ReplicaEnd end = replicas.end(0, mine);  // after other shares on the same evaluator
    CHECK(end.meeting == expected.meeting);
    CHECK(end.optimizer == expected.optimizer);
    CHECK(end.gather == expected.gather);
    CHECK(replicas.cost(0, mine).peak == alone.cost(mine.plan).peak);
  }
  CHECK(!replicas.is_valid(1, share(1, 4, 1, 1, 1)));  // four devices of two
  CHECK(!replicas.is_valid(0, share(1, 4, 1, 1, 0)));
}

TEST_CASE("an iteration is the slowest group's pipeline and a ring over the join") {
  const Scenario s = read(4, 2);
  ReplicaEvaluator replicas = evaluator_of(s);
  const auto& join = s.cluster.tiers.back();
  const double bytes = parameter_count(s.model) * gradient_bytes_per_parameter(s.training);
  // Two groups: two steps of half of what one of the smaller group's two devices holds.
  const double step = join.fixed.value + join.latency.value +
                      bytes / 2 / 2 / (join.bandwidth.value * join.efficiency);
  CHECK(replicas.across().value == doctest::Approx(2 * step).epsilon(1e-12));
  const std::vector<ReplicaShare> shares{share(1, 1, 4, 2, 2), share(1, 1, 2, 2, 2)};
  const ReplicaEnd quick = replicas.end(0, shares[0]), slow = replicas.end(1, shares[1]);
  CHECK(quick.meeting < slow.meeting);
  const Seconds expected =
      (slow.meeting + replicas.across() + costmodel::max(quick.optimizer, slow.optimizer) +
       costmodel::max(quick.gather, slow.gather) + s.training.stack.host.iteration) *
      straggler_factor(s.cluster);
  CHECK(replicas.iteration(shares).value == doctest::Approx(expected.value).epsilon(1e-12));
}

TEST_CASE("a slower group's replicas had better take fewer micro-batches") {
  const Scenario s = read(4, 4);
  ReplicaEvaluator replicas = evaluator_of(s);
  const auto both = [&](std::int64_t quick, std::int64_t slow) {
    return replicas.iteration({share(1, 1, 4, 1, quick), share(1, 1, 4, 1, slow)});
  };
  CHECK(both(4, 2) < both(3, 3));
  CHECK(both(3, 3) < both(2, 4));
  CHECK(both(4, 2) < both(5, 1));  // an H100 is not five times an A100
}

TEST_CASE("the sum over the groups grows with a slow join, and stays a number") {
  const Seconds fast = evaluator_of(read(4, 4)).across();
  const Seconds slow = evaluator_of(read(4, 4, "100 MB/s")).across();
  CHECK(slow > 100 * fast);
  CHECK(std::isfinite(evaluator_of(read(1, 1, "1 MB/s")).across().value));
}

}  // namespace replica_cost_test
