// Stages that differ, and devices that do: against plain plans, by hand, and their rules.
#include "costmodel/plan/stage_plan.hpp"

#include <doctest/doctest.h>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/machine/cluster_groups.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace stage_plan_test {

using namespace costmodel;
using fixtures::relative_error;

namespace {

const ModelSpec model = fixtures::gpt(24, 1024, 16, 51200, 1024);

ParallelPlan plan_of(const std::vector<StagePlan>& stages, std::vector<int> layers, int dp, int b) {
  ParallelPlan plan;
  plan.pp = static_cast<int>(stages.size());
  plan.dp = dp;
  plan.micro_batch = b;
  plan.stages = stages;
  plan.stage_layers = std::move(layers);
  return plan;
}

StagePlan stage(int tp, int dp, int zero = 0, Recompute recompute = {}) {
  return {tp, dp, recompute, zero, ""};
}

// Two kinds of devices on nodes of eight: `slowdown` tells the second from the first.
ClusterSpec two_kinds(std::int64_t first, std::int64_t second, double slowdown, double memory = 1) {
  ClusterSpec cluster = fixtures::cluster(first + second);
  ClusterSpec quick = fixtures::cluster(first), slow = fixtures::cluster(second);
  quick.name = "quick";
  slow.name = "slow";
  for (auto& peak : slow.device.peak) peak = peak / slowdown;
  slow.device.memory_bandwidth = slow.device.memory_bandwidth / slowdown;
  slow.device.memory = slow.device.memory * memory;
  cluster.groups = {quick, slow};
  cluster.tiers = {{"join", first + second, BytesPerSecond(2e9), Seconds(1e-5), Seconds(0), 1.0}};
  return cluster;
}

std::string fault(const ParallelPlan& plan, const ClusterSpec& cluster, std::int64_t batch = 64) {
  const auto found = violations(plan, model, cluster, fixtures::training(batch, 1024));
  CHECK(is_valid(plan, model, cluster, fixtures::training(batch, 1024)) == found.empty());
  return found.empty()
             ? ""
             : found.front().key + ": " + found.front().reason + "; " + found.front().remedy;
}

}  // namespace

TEST_CASE("stages that are all alike cost what the plain plan does") {
  struct Case {
    int tp, pp, dp, zero;
    bool sequence_parallel, scatter;
    Recompute recompute;
  };
  const Recompute full{Recomputation::full, 0}, some{Recomputation::full, 2};
  for (const Case& c : {Case{8, 2, 1, 0, false, false, {}}, Case{4, 4, 2, 1, true, false, full},
                        Case{8, 3, 2, 3, true, false, some}, Case{2, 2, 4, 2, false, true, some},
                        Case{1, 4, 8, 1, false, false, full}}) {
    ParallelPlan plain;
    plain.tp = c.tp, plain.pp = c.pp, plain.dp = c.dp, plain.zero = c.zero;
    plain.micro_batch = 2;
    plain.sequence_parallel = c.sequence_parallel;
    plain.recompute = c.recompute;
    ParallelPlan own = plain;
    own.stages.assign(static_cast<std::size_t>(c.pp), stage(c.tp, c.dp, c.zero, c.recompute));
    const ClusterSpec cluster = fixtures::cluster(plain.devices());
    TrainingSpec training = fixtures::training(96, 1024);
    training.stack.collectives.scatter_gather = c.scatter;
    training.stack.offers.max_zero = 3;
    Evaluator evaluator(model, cluster, training);
    const Estimate a = evaluator.estimate(plain), b = evaluator.estimate(own);
    CHECK(relative_error(a.iteration.value, b.iteration.value) < 1e-12);
    CHECK(a.peak == b.peak);
    CHECK(a.capacity == b.capacity);
    CHECK(relative_error(a.hardware_flops.value, b.hardware_flops.value) < 1e-12);
    CHECK(relative_error(a.traffic.send.value, b.traffic.send.value) < 1e-12);
    CHECK(relative_error(a.traffic.total().value, b.traffic.total().value) < 1e-12);
    CHECK(relative_error(a.breakdown.pp_comm.value, b.breakdown.pp_comm.value) < 1e-9);
    CHECK(b.breakdown.total().value == doctest::Approx(b.iteration.value));
    for (std::size_t r = 0; r < a.memory.size(); ++r)
      CHECK(a.memory[r].total() == b.memory[r].total());
  }
}

TEST_CASE("each stage has the times and memory of a pipeline of stages like it") {
  const ParallelPlan plan = plan_of(
      {stage(8, 1), stage(4, 2, 1, {Recomputation::full, 3}), stage(2, 4)}, {6, 8, 10}, 4, 1);
  const ClusterSpec cluster = fixtures::cluster(24);
  TrainingSpec training = fixtures::training(64, 1024);
  training.stack.offers.max_zero = 3;
  REQUIRE(violations(plan, model, cluster, training).empty());
  Evaluator mixed(model, cluster, training), plain(model, cluster, training);
  const PlanCost cost = mixed.cost(plan);
  CHECK(cost.micro_batches == 16);
  for (int k = 0; k < 3; ++k) {
    const auto i = static_cast<std::size_t>(k);
    ParallelPlan alike = plan;
    alike.stages.clear();
    alike.tp = plan.stages[i].tp;
    alike.dp = plan.stages[i].dp;
    alike.micro_batch = 4 / alike.dp;
    alike.recompute = plan.stages[i].recompute;
    alike.zero = plan.stages[i].zero;
    const PlanCost& own = plain.cost(alike);
    CHECK(cost.times.forward[i] == own.times.forward[i]);
    CHECK(cost.times.backward[i] == own.times.backward[i]);
    CHECK(cost.ranks[i].memory.total() == own.ranks[i].memory.total());
    CHECK(cost.ranks[i].after.gradient_exposed == own.ranks[i].after.gradient_exposed);
    CHECK(cost.ranks[i].after.optimizer == own.ranks[i].after.optimizer);
  }
}

TEST_CASE("between stages cut otherwise every element is sent once, or once a tensor rank") {
  const ClusterSpec cluster = fixtures::cluster(16);
  TrainingSpec training = fixtures::training(64, 1024);
  const ParallelPlan plan = plan_of({stage(2, 4), stage(8, 1)}, {12, 12}, 4, 2);
  const double whole = 4.0 * 2 * 1024 * 1024 * 2;  // sequences x s x h x fp16
  for (const bool scatter : {false, true}) {
    training.stack.collectives.scatter_gather = scatter;
    Evaluator evaluator(model, cluster, training);
    const PlanCost& cost = evaluator.cost(plan);
    REQUIRE(cost.boundaries.size() == 1);
    const StageBoundary& b = cost.boundaries.front();
    CHECK(b.forward.sent.value == doctest::Approx(whole * (scatter ? 1 : 8) / 8));
    CHECK(b.backward.sent.value == doctest::Approx(whole * (scatter ? 1 : 2) / 8));
    // Gathered by the receiver: forward whole over 8 ranks, backward a quarter over 2.
    CHECK(b.forward.gathered.value == doctest::Approx(scatter ? whole * 7 / 8 : 0));
    CHECK(b.backward.gathered.value == doctest::Approx(scatter ? whole / 4 / 2 : 0));
    CHECK(cost.times.forward_transfer.front() == b.forward.time);
    CHECK(b.forward.time.value >= b.forward.sent.value / (25e9 * 0.9));
  }
}

TEST_CASE("the simulator takes each boundary's own transfer") {
  // Two stages of 1 s and 2 s, one micro-batch: 1 + out + 2 + 2 + back + 1.
  PipelineTimes times;
  times.forward = {Seconds(1), Seconds(2)};
  times.backward = {Seconds(1), Seconds(2)};
  times.forward_transfer = {Seconds(0.25)};
  times.backward_transfer = {Seconds(0.5)};
  std::vector<double> scratch;
  const auto one = compile(generate(ScheduleKind::one_f_one_b, 2, 1, 1));
  CHECK(simulate_makespan(one, times, scratch).value == doctest::Approx(6.75));
  // All alike: the same as one transfer for all, blocking or not.
  const auto many = compile(generate(ScheduleKind::one_f_one_b, 4, 1, 9));
  times.forward.assign(4, Seconds(1)), times.backward.assign(4, Seconds(2));
  for (const bool blocking : {false, true}) {
    times.blocking = blocking;
    times.transfer = Seconds(0.125);
    times.forward_transfer.clear(), times.backward_transfer.clear();
    const Seconds alike = simulate_makespan(many, times, scratch);
    times.forward_transfer.assign(3, Seconds(0.125));
    times.backward_transfer.assign(3, Seconds(0.125));
    times.transfer = Seconds(7);
    CHECK(simulate_makespan(many, times, scratch) == alike);
    const Timeline drawn = simulate_timeline(many, times);
    for (const Event& event : drawn.events)
      if (event.stream == Stream::pipeline_transfer)
        CHECK((event.end - event.start).value == doctest::Approx(0.125));
  }
}

TEST_CASE("no plan of random stages is faster than its bound; its parts add up") {
  fixtures::Random random(7);
  int tried = 0;
  for (int i = 0; i < 200; ++i) {
    const ClusterSpec cluster =
        two_kinds(8, 8 * random.integer(1, 2), random.real(1, 4), random.real(0.2, 1));
    std::vector<StagePlan> stages;
    std::vector<int> layers;
    const auto add = [&](std::int64_t left, const char* group) {
      while (left > 0) {
        int n = 1 << random.integer(0, 3);
        while (n > left) n /= 2;
        int tp = 1 << random.integer(0, 3);
        while (tp > n) tp /= 2;
        stages.push_back({tp, n / tp, {}, random.integer(0, 1), group});
        layers.push_back(random.integer(1, 6));
        left -= n;
      }
    };
    add(8, "quick");
    add(cluster.devices - 8, "slow");
    ModelSpec own = model;
    own.layers = 0;
    for (const int n : layers) own.layers += n;
    own.tie_embeddings = random.integer(0, 1) == 1;
    TrainingSpec training = fixtures::training(128, 1024);
    training.stack.collectives.scatter_gather = random.integer(0, 1) == 1;
    training.overlap.pp_overlap = random.integer(0, 1) == 1;
    const ParallelPlan plan = plan_of(stages, layers, 8, random.integer(1, 2));
    if (!is_valid(plan, own, cluster, training)) continue;
    ++tried;
    Evaluator evaluator(own, cluster, training);
    const Estimate e = evaluator.estimate(plan);
    CHECK(evaluator.cost(plan).bound.iteration.value <= e.iteration.value * (1 + 1e-12));
    CHECK(e.breakdown.total().value == doctest::Approx(e.iteration.value));
    CHECK(evaluator.timeline(plan).end().value == doctest::Approx(e.iteration.value));
    CHECK(e.mfu > 0);
    CHECK(e.mfu < 1);
  }
  CHECK(tried > 100);
}

TEST_CASE("memory is held against the devices of each stage") {
  // The second kind has a fifth of the memory: what is full there is not the largest stage.
  const ClusterSpec cluster = two_kinds(8, 8, 1, 0.02);
  ParallelPlan plan = plan_of({stage(1, 8), stage(8, 1)}, {20, 4}, 8, 1);
  Evaluator evaluator(model, cluster, fixtures::training(64, 1024));
  const Estimate e = evaluator.estimate(plan);
  REQUIRE(e.stage_capacity.size() == 2);
  CHECK(e.stage_capacity[1].value == doctest::Approx(0.02 * e.stage_capacity[0].value));
  const bool all =
      e.memory[0].total() <= e.stage_capacity[0] && e.memory[1].total() <= e.stage_capacity[1];
  CHECK(e.fits() == all);
  CHECK(e.memory[0].total() > e.memory[1].total());
  CHECK(e.fullest == 1);
  CHECK(e.peak == e.memory[1].total());
  CHECK(e.capacity == e.stage_capacity[1]);
}

TEST_CASE("a slower kind of device makes its stages slower and no others") {
  const ParallelPlan plan = plan_of({stage(1, 8), stage(1, 8)}, {12, 12}, 8, 8);
  const TrainingSpec training = fixtures::training(64, 1024);
  Evaluator even(model, two_kinds(8, 8, 1), training), slow(model, two_kinds(8, 8, 3), training);
  const PlanCost a = even.cost(plan), b = slow.cost(plan);
  CHECK(b.times.forward[0] == a.times.forward[0]);
  CHECK(b.times.forward[1] > 2 * a.times.forward[1]);
  CHECK(slow.iteration_time(plan) > even.iteration_time(plan));
  // Transfers go over what joins the groups: 2 GB/s here.
  CHECK(a.boundaries.front().forward.time.value >= a.boundaries.front().forward.sent.value / 2e9);
  Evaluator within(model, fixtures::cluster(16), training);
  CHECK(within.cost(plan).boundaries.front().forward.time < a.boundaries.front().forward.time);
}

TEST_CASE("a plain plan costs the same after one of stages that differ") {
  ParallelPlan plain;
  plain.tp = 8, plain.pp = 2, plain.micro_batch = 4;
  const ParallelPlan own =
      plan_of({stage(4, 1), stage(4, 1), stage(1, 4), stage(4, 1)}, {6, 6, 6, 6}, 1, 4);
  const TrainingSpec training = fixtures::training(64, 1024);
  Evaluator evaluator(model, fixtures::cluster(16), training), fresh = evaluator;
  evaluator.estimate(own);
  const Estimate after = evaluator.estimate(plain), alone = fresh.estimate(plain);
  CHECK(after.iteration == alone.iteration);
  CHECK(after.traffic.send == alone.traffic.send);
  CHECK(after.capacity == alone.capacity);
  CHECK(after.stage_capacity == alone.stage_capacity);
}

TEST_CASE("ranks that compute together are those of a machine, not of a stage") {
  ClusterSpec cluster = fixtures::cluster(8);
  cluster.device.together = {{1, 1, 1}, {8, 3, 1}};
  const auto forward = [&](const std::vector<StagePlan>& stages, const ClusterSpec& machines) {
    Evaluator evaluator(model, machines, fixtures::training(64, 1024));
    return evaluator.cost(plan_of(stages, {12, 12}, stages.front().dp, 8)).times.forward;
  };
  const auto equal = forward({stage(1, 4), stage(1, 4)}, cluster);
  const auto other = forward({stage(1, 4), stage(4, 1)}, cluster);
  CHECK(other.front() == equal.front());
  ClusterSpec apart = two_kinds(4, 4, 1);
  for (ClusterSpec& group : apart.groups) group.device.together = cluster.device.together;
  CHECK(forward({stage(1, 4), stage(1, 4)}, apart).front() < equal.front());
}

TEST_CASE("machines of each group count as stragglers, half-filled ones too") {
  ClusterSpec cluster = two_kinds(4, 4, 1);
  cluster.straggler_per_doubling = 0.1;
  CHECK(straggler_factor(cluster) == doctest::Approx(1.1));
}

TEST_CASE("submeshes are packed, the largest first; places are told") {
  ParallelPlan plan =
      plan_of({stage(1, 2), stage(2, 4), stage(1, 4), stage(1, 2)}, {6, 6, 6, 6}, 4, 1);
  const auto meshes = stage_meshes(plan, fixtures::cluster(16));
  REQUIRE(meshes.size() == 4);
  CHECK(meshes[1].first == 0);
  CHECK(meshes[2].first == 8);
  CHECK(meshes[0].first == 12);
  CHECK(meshes[3].first == 14);
  CHECK(fault(plan, fixtures::cluster(16)) == "");
}

TEST_CASE("what is impossible is named, with a remedy") {
  using fixtures::contains;
  const ClusterSpec plain = fixtures::cluster(16), mixed = two_kinds(8, 8, 2);
  const auto has = [](const std::string& text, const std::string& part) {
    INFO(text);
    CHECK(contains(text, part));
  };
  const std::vector<int> half{12, 12};
  has(fault(plan_of({stage(8, 1), stage(4, 1)}, half, 1, 1), plain),
      "stages: the stages' tp x dp add up to 12 devices, but the cluster has 16; make them add up");
  has(fault(plan_of({stage(8, 1), stage(1, 8)}, half, 4, 1), plain),
      "stages: stage 1: dp 8 does not divide the 4 sequences of dp 4 x micro_batch 1");
  has(fault(plan_of({stage(2, 3), stage(2, 3), stage(4, 1)}, {8, 8, 8}, 3, 1), plain, 96),
      "stage 0 of 6 devices does not divide nodes of 8; give it a part of a node");
  has(fault(plan_of({stage(2, 3), stage(2, 1), stage(8, 1)}, {8, 8, 8}, 3, 1), plain, 96),
      "stage 0 of 6 devices does not divide nodes of 8; give it a part of a node");
  has(fault(plan_of({stage(8, 1), stage(3, 1), stage(5, 1)}, {8, 8, 8}, 1, 1), plain),
      "stages: stage 1 of 3 devices does not divide nodes of 8");
  has(fault(plan_of({stage(3, 1), stage(5, 1)}, half, 1, 1), fixtures::cluster(8)),
      "stages: stage 0: tp 3");
  has(fault(plan_of({stage(4, 3), stage(4, 1)}, half, 3, 1), mixed, 96),
      "stages: stage 0 takes 12 devices, group 'quick' has 8 left: a stage lies on one kind of "
      "device; choose another tp x dp or group for it; the groups: quick, slow");
  ParallelPlan even;
  even.tp = 4, even.pp = 1, even.dp = 4;
  has(fault(even, mixed), "pp: stage 0 takes 16 devices, group 'quick' has 8 left");
  even.pp = 2, even.dp = 2;
  CHECK(fault(even, mixed) == "");
  ParallelPlan plan = plan_of({stage(8, 1), stage(8, 1)}, half, 1, 1);
  CHECK(fault(plan, plain) == "");
  plan.stages[1].group = "fast";
  has(fault(plan, mixed),
      "stages: stage 1: the cluster has no group 'fast'; choose among quick, slow");
  plan.stages[1].group = "quick", plan.stages[0].group = "slow";
  CHECK(fault(plan, mixed) == "");
  plan.vpp = 2;
  has(fault(plan, mixed), "schedule: stages that differ have one chunk a rank");
  plan.vpp = 1, plan.pp = 3;
  has(fault(plan, mixed), "stages: stages lists 2, pp is 3");
}

}  // namespace stage_plan_test
