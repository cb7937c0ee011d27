// What comes on top of kernels and links: host time, waiting, stragglers, clocks.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "costmodel/cost/device_time.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/operators/op_list.hpp"
#include "costmodel/operators/transformer.hpp"
#include "tests/costmodel/support/fixtures.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace slowdowns_test {

using namespace costmodel;
using fixtures::relative_error;

namespace {

const ModelSpec model = fixtures::gpt(16, 2048, 16, 51200, 1024);

ParallelPlan plan_of(int tp, int pp, int dp) {
  ParallelPlan plan;
  plan.tp = tp;
  plan.pp = pp;
  plan.dp = dp;
  return plan;
}

Estimate estimate_of(const ClusterSpec& cluster, const TrainingSpec& training,
                     const ParallelPlan& plan) {
  return Evaluator(model, cluster, training).estimate(plan);
}

}  // namespace

TEST_CASE("stragglers lengthen an iteration by a share with each doubling of nodes") {
  ClusterSpec cluster = fixtures::cluster(64);
  const TrainingSpec training = fixtures::training(64, 1024);
  const ParallelPlan plan = plan_of(1, 1, 64);
  const Estimate even = estimate_of(cluster, training, plan);
  cluster.straggler_per_doubling = 0.01;
  const double nodes = 64.0 / static_cast<double>(cluster.devices_per_node);
  CHECK(relative_error(straggler_factor(cluster), 1 + 0.01 * std::log2(nodes)) <= 1e-12);
  const Estimate waiting = estimate_of(cluster, training, plan);
  CHECK(relative_error(waiting.iteration / even.iteration, straggler_factor(cluster)) <= 1e-12);
  CHECK(relative_error(waiting.breakdown.other.value, (waiting.iteration - even.iteration).value) <=
        1e-9);
  cluster.devices_per_node = 64;
  CHECK(straggler_factor(cluster) == 1);
}

TEST_CASE("the time factor of a cluster's own runs is on all times alike") {
  for (const double factor : {0.8, 1.25}) {
    for (const ScheduleKind schedule : {ScheduleKind::one_f_one_b, ScheduleKind::zero_bubble_h1}) {
      ClusterSpec cluster = fixtures::cluster(64);
      cluster.straggler_per_doubling = 0.01;
      const TrainingSpec training = fixtures::training(64, 1024);
      ParallelPlan plan = plan_of(2, 4, 8);
      plan.schedule = schedule;
      Evaluator plain(model, cluster, training);
      const Estimate before = plain.estimate(plan);
      cluster.measured.time_factor = factor;
      Evaluator own(model, cluster, training);
      const Estimate after = own.estimate(plan);
      const auto scaled = [&](Seconds was, Seconds is) {
        return std::abs((is - was * factor).value) <= 1e-9 * before.iteration.value;
      };
      CHECK(scaled(before.iteration, after.iteration));
      CHECK(scaled(plain.iteration_time(plan), own.iteration_time(plan)));
      CHECK(scaled(plain.cost(plan).bound.iteration, own.cost(plan).bound.iteration));
      CHECK(scaled(before.breakdown.compute, after.breakdown.compute));
      CHECK(scaled(before.breakdown.other, after.breakdown.other));
      CHECK(scaled(before.breakdown.bubble, after.breakdown.bubble));
      CHECK(scaled(after.breakdown.total() / factor, after.iteration));
      CHECK(scaled(before.stage_backward.back(), after.stage_backward.back()));
      CHECK(iteration_factor(cluster) == factor * straggler_factor(cluster));
      Seconds last;
      for (const Event& event : own.timeline(plan).events) last = max(last, event.end);
      Seconds first;
      for (const Event& event : plain.timeline(plan).events) first = max(first, event.end);
      CHECK(scaled(first, last));
    }
  }
}

TEST_CASE("host time is paid once an iteration and once a micro-batch") {
  const ClusterSpec cluster = fixtures::cluster(8);
  TrainingSpec training = fixtures::training(64, 1024);
  const ParallelPlan plan = plan_of(1, 1, 8);  // 8 micro-batches
  const Estimate none = estimate_of(cluster, training, plan);
  training.stack.host.iteration = Seconds(0.5);
  const Estimate once = estimate_of(cluster, training, plan);
  CHECK(relative_error((once.iteration - none.iteration).value, 0.5) <= 1e-9);
  training.stack.host.micro_batch = Seconds(0.25);
  const Estimate often = estimate_of(cluster, training, plan);
  CHECK(relative_error((often.iteration - once.iteration).value, 8 * 0.25) <= 1e-9);
  CHECK(relative_error(often.breakdown.other.value, 0.5 + 8 * 0.25) <= 1e-9);
  CHECK(relative_error(often.breakdown.total().value, often.iteration.value) <= 1e-9);
}

TEST_CASE("ranks wait at each exposed tensor-parallel collective") {
  const ClusterSpec cluster = fixtures::cluster(8);
  TrainingSpec training = fixtures::training(8, 1024);
  const ParallelPlan plan = plan_of(8, 1, 1);  // 8 micro-batches
  const Estimate none = estimate_of(cluster, training, plan);
  training.stack.host.collective_wait = Seconds(1e-3);
  const Estimate waits = estimate_of(cluster, training, plan);
  // Two all-reduces a layer and pass, one of the embedding, three of the loss, one back from the
  // head.
  const double collectives = 8 * (16 * 4 + 1 + 3 + 1);
  CHECK(relative_error((waits.breakdown.tp_comm - none.breakdown.tp_comm).value,
                       collectives * 1e-3) <= 1e-9);
  // As long where their hosts set the pace.
  training.stack.host.kernel_launch = Seconds(0.01);
  const Seconds paced = estimate_of(cluster, training, plan).iteration;
  training.stack.host.collective_wait = Seconds(0);
  const Seconds launches = estimate_of(cluster, training, plan).iteration;
  CHECK(launches > 2 * waits.iteration);
  CHECK(relative_error((paced - launches).value, collectives * 1e-3) <= 1e-6);
}

TEST_CASE("devices that idle in the bubble compute faster, unless the host sets the pace") {
  ClusterSpec cluster = fixtures::cluster(8);
  TrainingSpec training = fixtures::training(8, 1024);
  const ParallelPlan plan = plan_of(1, 8, 1);  // bubble 7 of 15
  const Estimate cold = estimate_of(cluster, training, plan);
  cluster.device.idle_boost = 0.3;
  const Estimate boosted = estimate_of(cluster, training, plan);
  CHECK(relative_error(boosted.breakdown.compute / cold.breakdown.compute, 1 - 0.3 * 7 / 15) <=
        1e-9);
  training.stack.host.kernel_launch = Seconds(0.01);
  const Estimate host = estimate_of(cluster, training, plan);
  cluster.device.idle_boost = 0;
  CHECK(host.iteration == estimate_of(cluster, training, plan).iteration);
  cluster.device.idle_boost = 0.3;
  training.stack.host.kernel_launch = Seconds(0);
  const ParallelPlan flat = plan_of(8, 1, 1);
  const Estimate busy = estimate_of(cluster, training, flat);
  cluster.device.idle_boost = 0;
  CHECK(busy.iteration == estimate_of(cluster, training, flat).iteration);
}

TEST_CASE("a graph replaces the host's launches, by the device's figure where it has one") {
  ClusterSpec cluster = fixtures::cluster(8);
  TrainingSpec training = fixtures::training(8, 1024);
  training.stack.host.kernel_launch = Seconds(0.01);  // longer than any kernel or collective
  const ParallelPlan plan = plan_of(1, 2, 4);
  const Estimate eager = estimate_of(cluster, training, plan);
  training.overlap.cuda_graph = true;
  const Estimate unknown = estimate_of(cluster, training, plan);
  cluster.device.graph_kernel_launch = Seconds(0.002);
  const Estimate replayed = estimate_of(cluster, training, plan);
  CHECK(unknown.iteration < replayed.iteration);
  CHECK(relative_error(replayed.stage_forward.front() / eager.stage_forward.front(), 0.2) <= 1e-9);
  cluster.launch_blocked = Seconds(0.01);  // nobody waits between a graph's kernels
  CHECK(estimate_of(cluster, training, plan).iteration == replayed.iteration);
  const auto says = [](const Estimate& e, const char* what) {
    return std::ranges::any_of(e.notes, [&](const auto& n) { return n.find(what) != n.npos; });
  };
  CHECK(says(replayed, "cuda_graph: launches are replayed, 2 ms a kernel at least"));
  CHECK(says(unknown, "launch.graph_kernel_s"));
  CHECK_FALSE(says(eager, "cuda_graph"));
}

TEST_CASE("a schedule that fills the bubble leaves no time to cool down in") {
  ClusterSpec cluster = fixtures::cluster(8);
  const TrainingSpec training = fixtures::training(8, 1024);
  ParallelPlan plan = plan_of(1, 8, 1);
  plan.schedule = ScheduleKind::zero_bubble_h2;
  const Estimate cold = estimate_of(cluster, training, plan);
  cluster.device.idle_boost = 0.3;
  CHECK(estimate_of(cluster, training, plan).iteration == cold.iteration);
}

TEST_CASE("ZeRO-3 by one port of a node takes as much longer as the node has devices") {
  ClusterSpec cluster = fixtures::cluster(64);
  cluster.tiers.back().latency = cluster.tiers.back().fixed = Seconds(0);
  cluster.tiers.front().latency = cluster.tiers.front().fixed = Seconds(0);
  TrainingSpec training = fixtures::training(64, 1024);
  training.stack.zero.prefetch = false;
  training.overlap.overlap_grad_reduce = false;
  ParallelPlan plan = plan_of(1, 1, 64);
  plan.zero = 3;
  const double all_ports = estimate_of(cluster, training, plan).breakdown.dp_comm.value;
  plan.zero = 2;
  const Seconds two = estimate_of(cluster, training, plan).breakdown.dp_comm;
  training.stack.zero.one_port = true;
  CHECK(estimate_of(cluster, training, plan).breakdown.dp_comm == two);
  plan.zero = 3;
  CHECK(relative_error(estimate_of(cluster, training, plan).breakdown.dp_comm.value,
                       8 * all_ports) <= 1e-9);
}

TEST_CASE("gradients in buckets pay the start of each, and no more bytes") {
  ClusterSpec cluster = fixtures::cluster(64);
  TrainingSpec training = fixtures::training(64, 1024);
  training.overlap.overlap_grad_reduce = false;
  const auto exposed = [&] {
    return estimate_of(cluster, training, plan_of(1, 1, 64)).breakdown.dp_comm;
  };
  const Seconds whole = exposed();
  training.stack.collectives.gradient_bucket = Bytes(25e6);
  CHECK(exposed() > whole);
  training.stack.collectives.gradient_bucket = Bytes(1e12);
  CHECK(exposed() == whole);
  for (auto& tier : cluster.tiers) tier.latency = tier.fixed = Seconds(0);
  const Seconds free = exposed();
  training.stack.collectives.gradient_bucket = Bytes(25e6);
  CHECK(relative_error(exposed().value, free.value) <= 1e-9);
}

TEST_CASE("with one queue of collectives only tensor parallelism exposes the reduction") {
  const ClusterSpec cluster = fixtures::cluster(64);
  TrainingSpec training = fixtures::training(64, 1024);
  training.overlap.overlap_grad_reduce = true;
  const auto exposed = [&](int tp) {
    return estimate_of(cluster, training, plan_of(tp, 1, 64 / tp)).breakdown.dp_comm;
  };
  const Seconds alone = exposed(1), with_tensor = exposed(8);
  training.stack.collectives.one_collective_queue = true;
  CHECK(exposed(1) == alone);
  CHECK(exposed(8) > with_tensor);
}

TEST_CASE("a reduction that is not hidden takes as long as after the last backward") {
  const ClusterSpec cluster = fixtures::cluster(64);
  TrainingSpec training = fixtures::training(64, 1024);
  const auto exposed = [&](int tp) {
    return estimate_of(cluster, training, plan_of(tp, 1, 64 / tp)).breakdown.dp_comm;
  };
  for (const int tp : {1, 8}) {
    training.overlap.overlap_grad_reduce = false;
    training.stack.collectives.reduction_not_hidden = false;
    const Seconds after = exposed(tp);
    training.overlap.overlap_grad_reduce = true;
    CHECK(exposed(tp) < after);
    training.stack.collectives.reduction_not_hidden = true;
    CHECK(exposed(tp) == after);
  }
}

TEST_CASE("ranks that own complete parameters broadcast them one after the other") {
  const ClusterSpec cluster = fixtures::cluster(64);
  TrainingSpec training = fixtures::training(64, 1024);
  training.overlap.overlap_param_gather = false;
  training.stack.zero.broadcasts = true;
  for (const int dp : {8, 64}) {
    ParallelPlan plan = plan_of(1, 1, dp);
    plan.zero = 1;
    const PlanCost cost = Evaluator(model, cluster, training).cost(plan);
    const Bytes all(cost.ranks[0].weights.all * gather_bytes_per_parameter(training));
    const Seconds each =
        collective_time(CollectiveKind::broadcast, all / dp, layout_of(dp, 1, cluster), cluster);
    CHECK(relative_error(cost.ranks[0].after.gather_exposed.value, (dp * each).value) <= 1e-9);
    CHECK(estimate_of(cluster, training, plan).traffic.send == all);
  }
}

TEST_CASE("with one queue of collectives a stage waits for the reductions of all later ones") {
  const ClusterSpec cluster = fixtures::cluster(64);
  TrainingSpec training = fixtures::training(64, 1024);
  training.overlap.overlap_grad_reduce = true;
  training.overlap.pp_overlap = false;
  const ParallelPlan plan = plan_of(1, 4, 16);
  const auto exposed = [&] {
    std::vector<Seconds> all;
    Evaluator evaluator(model, cluster, training);
    for (const RankRow& rank : evaluator.cost(plan).ranks)
      all.push_back(rank.after.gradient_exposed);
    return all;
  };
  const auto iteration = [&] { return estimate_of(cluster, training, plan).iteration; };
  const std::vector<Seconds> own = exposed();
  const Seconds overlapped = iteration();
  training.stack.collectives.one_collective_queue = true;
  const std::vector<Seconds> summed = exposed();
  REQUIRE(summed.size() == 4);
  Seconds sum;
  for (std::size_t r = 4; r-- > 0;) {
    CHECK(own[r].value > 0);
    sum += own[r];
    CHECK(relative_error(summed[r].value, sum.value) <= 1e-12);
  }
  CHECK(relative_error((iteration() - overlapped).value, (sum - own[0]).value) <= 1e-6);
  training.overlap.pp_overlap = true;
  CHECK(exposed() == own);
  training.overlap.pp_overlap = false;
  training.overlap.overlap_grad_reduce = false;  // after the last backward nothing waits to be sent
  const std::vector<Seconds> after = exposed();
  training.stack.collectives.one_collective_queue = false;
  CHECK(exposed() == after);
}

TEST_CASE("attention fills the device with many blocks of wide heads") {
  DeviceSpec device = fixtures::device();
  const auto time = [&](std::int64_t heads, std::int64_t head_dim) {
    const Op op = FlashAttention{1, 4096, heads, heads, head_dim, false};
    return device_time(op, Pass::forward, device, Precision::bf16).value;
  };
  const double best = time(8, 128);
  device.attention_half_blocks = 256;  // 8 heads of 32 blocks: half
  CHECK(relative_error(time(8, 128), 2 * best) <= 1e-12);
  device.attention_half_blocks = 0;
  device.attention_half_head_dim = 128;
  CHECK(relative_error(time(8, 128), 2 * best) <= 1e-12);
}

TEST_CASE("cast operands are kept in their own width") {
  LayerContext context;
  context.micro_batch = 1;
  context.sequence = 1024;
  const auto kept = [&](double saved_input) {
    context.saved_input = saved_input;
    return footprint(build_layer(LayerKind::block, model, context), Recomputed::nothing)
        .kept_activations.value;
  };
  // Inputs of QKV and of the first MLP product shrink by a byte, the second's by one of 4h; the
  // projection's is kept beside the attention's result.
  const double sh = 1024.0 * 2048;
  CHECK(kept(0) - kept(1) == sh + sh + 4 * sh - sh);
}

TEST_CASE("bf16 under DeepSpeed: fp32 gradients beside bf16 ones") {
  const ClusterSpec cluster = fixtures::cluster(8);
  TrainingSpec training = fixtures::training(8, 1024);
  training.precision = Precision::bf16;
  training.gradient_precision = Precision::fp32;
  const Estimate plain = estimate_of(cluster, training, plan_of(8, 1, 1));
  training.stack.memory.bf16_optimizer = true;
  const Estimate both = estimate_of(cluster, training, plan_of(8, 1, 1));
  CHECK(relative_error(both.memory[0].gradients / plain.memory[0].gradients, 1.5) <= 1e-12);
}

TEST_CASE("selective recomputation of every second product takes the time of every second layer") {
  const ClusterSpec cluster = fixtures::cluster(8);
  TrainingSpec training = fixtures::training(8, 1024);
  training.stack.memory.selective_half = true;
  ParallelPlan plan = plan_of(8, 1, 1);
  plan.recompute.granularity = Recomputation::selective;
  const Estimate half = estimate_of(cluster, training, plan);
  plan.recompute = {Recomputation::full, 8};
  const Estimate eight = estimate_of(cluster, training, plan);
  CHECK(half.iteration == eight.iteration);
  // The first, third, ... product of each layer stays, next to its input and attention's result.
  plan.recompute = {Recomputation::full, 0};
  CHECK(half.peak > estimate_of(cluster, training, plan).peak);
  plan.recompute = {};
  CHECK(half.peak < estimate_of(cluster, training, plan).peak);
}

TEST_CASE(
    "Megatron's products add gradients of 16 bits as those of 32: narrower ones take less time") {
  const auto seconds = [](const char* stack, const char* gradients) {
    const Scenario s = scenarios::read(
        std::string("model: llama-3-8b\ncluster: {base: dgx-h100, devices: 8}\ntraining: "
                    "{global_batch: 64, sequence: 4096, stack: ") +
        stack + ", gradient_precision: " + gradients + "}\nplan: {tp: 2, pp: 1, dp: 4, zero: 1}\n");
    return Evaluator(s.model, s.cluster, s.training).iteration_time(resolve_plan(s)).value;
  };
  for (const char* stack : {"megatron-core-2024", "megatron-core-2025", "megatron-core-2026"})
    CHECK(seconds(stack, "bf16") < seconds(stack, "fp32"));
}

TEST_CASE("a stack without compiled kernels is priced as without torch.compile, with a note") {
  const auto estimate = [](const char* stack, bool compile) {
    const Scenario s = scenarios::read(
        std::string("model: llama-3.2-1b\ncluster: {base: dgx-h100, devices: 1}\ntraining: "
                    "{global_batch: 1, sequence: 2048, stack: ") +
        stack + ", overlap: {compile: " + (compile ? "true" : "false") + "}}\n");
    return Evaluator(s.model, s.cluster, s.training).estimate(resolve_plan(s));
  };
  const auto notes = [](const Estimate& e) {
    return std::ranges::any_of(e.notes, [](const std::string& note) {
      return note.starts_with("compile: peft has no compiled kernels");
    });
  };
  CHECK(notes(estimate("peft", true)));
  CHECK_FALSE(notes(estimate("peft", false)));
  CHECK(estimate("peft", true).iteration == estimate("peft", false).iteration);
  CHECK(estimate("torchtitan", true).iteration < estimate("torchtitan", false).iteration);
}

}  // namespace slowdowns_test
