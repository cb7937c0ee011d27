// Whole plans against the published closed forms: FLOPs, time, Megatron's choice of micro-batch.
#include "costmodel/estimate/evaluator.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "costmodel/estimate/iteration_end.hpp"
#include "costmodel/estimate/pricing.hpp"
#include "costmodel/plan/plan_text.hpp"
#include "tests/costmodel/support/estimated.hpp"

namespace evaluator_test {

using namespace costmodel;
using fixtures::Case;
using fixtures::cases;
using fixtures::estimated;
using fixtures::relative_error;

namespace {

std::vector<ParallelPlan> some_plans() {
  std::vector<ParallelPlan> plans(5);
  plans[1].tp = 8;
  plans[2].tp = 4, plans[2].pp = 4, plans[2].dp = 2, plans[2].micro_batch = 2,
  plans[2].sequence_parallel = true;
  plans[3].pp = 2, plans[3].vpp = 2, plans[3].schedule = ScheduleKind::interleaved;
  plans[4].dp = 8, plans[4].zero = 3, plans[4].micro_batch = 2;
  return plans;
}

}  // namespace

TEST_CASE("FLOPs of an iteration: Narayanan et al. 2021, eq. 3, with and without recomputation") {
  for (const Case& c : cases) {
    const double B = static_cast<double>(c.batch), s = static_cast<double>(c.sequence);
    const double l = static_cast<double>(c.layers), h = static_cast<double>(c.hidden);
    const double V = static_cast<double>(c.vocab);
    for (ParallelPlan plan : some_plans()) {
      for (const auto kernel : {AttentionKernel::unfused, AttentionKernel::flash}) {
        CAPTURE(h);
        CAPTURE(to_string(plan));
        const double model = 72 * B * s * l * h * h * (1 + s / (6 * h) + V / (12 * l * h));
        plan.recompute.granularity = Recomputation::none;
        const Estimate none = estimated(c, plan, kernel);
        CHECK(relative_error(none.model_flops.value, model) <= 1e-12);
        // Fused attention computes its scores again in the backward pass: seven products, not six,
        // of 2Bs²hl each.
        const double again = kernel == AttentionKernel::flash ? 2 * B * s * s * h * l : 0;
        CHECK(relative_error(none.hardware_flops.value, model + again) <= 1e-12);
        plan.recompute.granularity = Recomputation::full;
        const Estimate full = estimated(c, plan, kernel);
        const double eq3 = 96 * B * s * l * h * h * (1 + s / (6 * h) + V / (16 * l * h));
        CHECK(relative_error(full.hardware_flops.value, eq3 + again) <= 1e-12);
        CHECK(full.model_flops.value == none.model_flops.value);
        // Selective: the two products of the attention core once more, 4Bs²hl = 72Blsh²·s/18h.
        plan.recompute.granularity = Recomputation::selective;
        const Estimate selective = estimated(c, plan, kernel);
        const double once_more = 72 * B * s * l * h * h * (1 + 2 * s / (9 * h) + V / (12 * l * h));
        CHECK(relative_error(selective.hardware_flops.value, once_more + again) <= 1e-12);
      }
    }
  }
}

TEST_CASE("recomputing the first layers of each stage costs their share") {
  const Case c = cases[1];
  ParallelPlan plan;
  plan.pp = 2;
  const double none = estimated(c, plan).hardware_flops.value;
  plan.recompute = {Recomputation::full, 0};
  const double full = estimated(c, plan).hardware_flops.value;
  plan.recompute.layers = 3;  // of the eight of each stage
  CHECK(relative_error(estimated(c, plan).hardware_flops.value - none, (full - none) * 3 / 8) <=
        1e-12);
}

TEST_CASE("hfu and mfu follow from the FLOPs and the time") {
  ParallelPlan plan;
  plan.dp = 4;
  plan.recompute.granularity = Recomputation::full;
  const Estimate e = estimated(cases[0], plan);
  CHECK(relative_error(e.mfu, e.model_flops.value / (e.iteration.value * 4 * 312e12)) <= 1e-12);
  CHECK(relative_error(e.hfu / e.mfu, e.hardware_flops / e.model_flops) <= 1e-12);
  CHECK(relative_error(e.tokens_per_s, 16 * 512 / e.iteration.value) <= 1e-12);
}

TEST_CASE("what a kernel skips is not executed: no share of the peak is above one") {
  Case c = cases[0];
  c.sequence = 1 << 22;
  TrainingSpec training = fixtures::training(c.batch, c.sequence);
  training.stack.kernels.attention = AttentionKernel::flash;
  training.stack.kernels.causal_skip = true;
  const Estimate e = Evaluator(gpt(c), fixtures::cluster(1), training).estimate(ParallelPlan{});
  // Nearly all is attention: of its twelve products, masked, seven of fourteen are computed.
  CHECK(e.hardware_flops / e.model_flops == doctest::Approx(7.0 / 12).epsilon(0.01));
  CHECK(e.hfu < 1);
}

TEST_CASE(
    "a pipeline's time is (b'/b + p - 1)(t_f + t_b) within the embedding's and head's share") {
  const Case c = {32, 2048, 16, 51200, 1024, 64};
  ModelSpec model = fixtures::gpt(c);
  model.tie_embeddings = false;
  const TrainingSpec training = fixtures::training(c.batch, c.sequence);
  for (const int d : {1, 2}) {
    for (const int p : {2, 4, 8}) {
      for (const std::int64_t b : {1, 2, 4, 8}) {
        CAPTURE(p);
        CAPTURE(b);
        CAPTURE(d);
        ParallelPlan plan;
        plan.pp = p, plan.dp = d, plan.micro_batch = b;
        ClusterSpec cluster = fixtures::cluster(plan.devices());
        for (Tier& tier : cluster.tiers) {  // transfers take no time
          tier.bandwidth = BytesPerSecond(1e30);
          tier.latency = tier.fixed = Seconds(0);
        }
        Evaluator evaluator(model, cluster, training);
        const PipelineTimes times = evaluator.cost(plan).times;
        const Estimate e = evaluator.estimate(plan);
        const double pipeline = (e.iteration - e.breakdown.optimizer).value;
        const double steps = static_cast<double>(c.batch / d / b) + p - 1;
        // A layer's share of the blocks alone, and the slowest stage with the embedding or head on
        // it.
        const auto& block = evaluator.layer(LayerKind::block, plan, Recomputed::nothing);
        const double inner = (block.forward.time() + block.backward.time()).value *
                             static_cast<double>(c.layers) / p;
        double slowest = 0;
        for (std::size_t k = 0; k < times.forward.size(); ++k)
          slowest = std::max(slowest, (times.forward[k] + times.backward[k]).value);
        CHECK(pipeline >= steps * inner * (1 - 1e-12));
        CHECK(pipeline <= steps * slowest * (1 + 1e-12));
        if (p == 2)
          CHECK(slowest / inner <
                1.35);  // the head is worth a few layers of sixteen, so the bracket is narrow
        if (p == 4 || p == 8) {
          CHECK(relative_error((times.forward[1] + times.backward[1]).value, inner) <= 1e-12);
        }
      }
    }
  }
}

TEST_CASE(
    "a micro-batch of twice the size takes less than twice the time: figure 7 of Narayanan et al. "
    "2021") {
  const TrainingSpec training = fixtures::training(64, 512);
  for (const std::int64_t hidden : {256, 1024, 2048}) {
    const ModelSpec model = fixtures::gpt(4, hidden, 16, 51200, 512);
    Evaluator evaluator(model, fixtures::cluster(1), training);
    double previous_forward = 0, previous_backward = 0;
    for (std::int64_t b = 1; b <= 16; b *= 2) {
      CAPTURE(hidden);
      CAPTURE(b);
      ParallelPlan plan;
      plan.micro_batch = b;
      const auto& cost = evaluator.cost(plan);
      const double forward = cost.times.forward[0].value, backward = cost.times.backward[0].value;
      if (b > 1) {
        CHECK(forward < 2 * previous_forward);
        CHECK(backward < 2 * previous_backward);
        CHECK(forward >= previous_forward);
      }
      previous_forward = forward;
      previous_backward = backward;
    }
  }
}

TEST_CASE("an estimate adds up, and no iteration is shorter than its bound") {
  for (const Case& c : {cases[0], cases[1]}) {
    for (ParallelPlan plan : some_plans()) {
      for (const auto recompute :
           {Recomputation::none, Recomputation::selective, Recomputation::full}) {
        plan.recompute.granularity = recompute;
        CAPTURE(to_string(plan));
        TrainingSpec training = fixtures::training(c.batch, c.sequence);
        Evaluator evaluator(fixtures::gpt(c), fixtures::cluster(plan.devices()), training);
        const Estimate e = evaluator.estimate(plan);
        CHECK(relative_error(e.breakdown.total().value, e.iteration.value) <= 1e-12);
        for (const Seconds part : {e.breakdown.compute, e.breakdown.recompute, e.breakdown.tp_comm,
                                   e.breakdown.pp_comm, e.breakdown.dp_comm, e.breakdown.bubble,
                                   e.breakdown.imbalance, e.breakdown.optimizer})
          CHECK(part.value >= -1e-12 * e.iteration.value);
        CHECK(evaluator.iteration_time(plan).value == e.iteration.value);
        CHECK(evaluator.cost(plan).bound.iteration.value <= e.iteration.value * (1 + 1e-12));
        CHECK(relative_error(evaluator.timeline(plan).end().value, e.iteration.value) <= 1e-12);
        CHECK(e.peak.value > 0);
        for (const auto& memory : e.memory) CHECK(memory.total() <= e.peak);
      }
    }
  }
}

TEST_CASE("the price of a layer does not depend on what was asked before") {
  const Case c = cases[1];
  const ModelSpec model = fixtures::gpt(c);
  const TrainingSpec training = fixtures::training(c.batch, c.sequence);
  std::vector<ParallelPlan> plans;
  for (const int t : {1, 2, 4, 8}) {
    for (const int p : {1, 2}) {
      for (const std::int64_t b : {1, 2, 4}) {
        for (const auto r : {Recomputation::none, Recomputation::selective, Recomputation::full}) {
          for (const bool sp : {false, true}) {
            ParallelPlan plan;
            plan.tp = t, plan.pp = p, plan.dp = 16 / t / p, plan.micro_batch = b,
            plan.recompute.granularity = r;
            plan.sequence_parallel = sp;
            if (is_valid(plan, model, fixtures::cluster(16), training)) plans.push_back(plan);
          }
        }
      }
    }
  }
  CHECK(plans.size() > 60);
  Evaluator shared(model, fixtures::cluster(16), training);
  for (const auto& plan : plans) shared.iteration_time(plan);
  for (const auto& plan : plans) {
    CAPTURE(to_string(plan));
    CHECK(Evaluator(model, fixtures::cluster(16), training).estimate(plan).iteration.value ==
          shared.iteration_time(plan).value);
  }
}

TEST_CASE("parameters gathered one by one: the host slices each for each rank") {
  const Case c = cases[1];
  ParallelPlan plan;
  plan.dp = 16, plan.zero = 1;
  const auto time = [&](double slice) {
    TrainingSpec training = fixtures::training(c.batch, c.sequence);
    training.overlap.overlap_param_gather = false;
    training.stack.zero.slice = Seconds(slice);
    return Evaluator(fixtures::gpt(c), fixtures::cluster(16), training).iteration_time(plan).value;
  };
  // Four matrices and two norms a layer, and the table.
  const double tensors = 16 * (4 + 2) + 1;
  CHECK(time(5e-6) - time(2e-6) == doctest::Approx(3e-6 * tensors * 16).epsilon(1e-6));
  CHECK(time(1e-9) > time(0));  // many small messages cost more than one
  plan.zero = 0;
  CHECK(time(5e-6) == time(0));
}

TEST_CASE("ZeRO-1 that keeps gradients unsharded all-reduces them after the backward") {
  const Case c = cases[1];
  const ModelSpec model = fixtures::gpt(c);
  const ClusterSpec cluster = fixtures::cluster(16);
  ParallelPlan plan;
  plan.dp = 16, plan.zero = 1;
  const auto of = [&](bool unsharded, bool hides) {
    TrainingSpec training = fixtures::training(c.batch, c.sequence);
    training.overlap.overlap_grad_reduce = hides;
    training.stack.zero.all_reduce = unsharded;
    return Evaluator(model, cluster, training).estimate(plan);
  };
  const Estimate scattered = of(false, true), reduced = of(true, true);
  CHECK(scattered.traffic.all_reduce.value == 0);
  CHECK(reduced.traffic.reduce_scatter.value == 0);
  CHECK(reduced.traffic.all_reduce.value ==
        doctest::Approx(2 * scattered.traffic.reduce_scatter.value));
  CHECK(reduced.iteration == of(true, false).iteration);  // nothing hides it
  CHECK(reduced.iteration > of(false, false).iteration);
  // Its norm, its scaling and what is cleared are of all parameters.
  const TrainingSpec training = fixtures::training(c.batch, c.sequence);
  TrainingSpec unsharded = training;
  unsharded.stack.zero.all_reduce = true;
  const double gradient = gradient_bytes_per_parameter(training);
  CHECK(optimizer_traffic(1e6, 16e6, unsharded).value -
            optimizer_traffic(1e6, 16e6, training).value ==
        3 * gradient * 15e6);
}

TEST_CASE("a very long schedule continued by its period ends when the whole one does") {
  // Seven layers on eight ranks are uneven; just above what is simulated whole.
  for (const bool beside : {false, true}) {
    TrainingSpec training = fixtures::training(70003, 256);
    training.overlap.pp_overlap = beside;
    const ModelSpec model = fixtures::gpt(14, 512, 8, 51200, 256);
    const ClusterSpec cluster = fixtures::cluster(8);
    ParallelPlan plan;
    plan.pp = 8;
    plan.stage_layers = {1, 2, 2, 3, 2, 2, 1, 1};
    Evaluator evaluator(model, cluster, training);
    const PlanCost cost = evaluator.cost(plan);
    REQUIRE(2 * cost.micro_batches * plan.pp > most_simulated_actions);
    std::vector<double> scratch;
    const auto schedule = generate(plan.schedule, plan.pp, 1, static_cast<int>(cost.micro_batches));
    const double whole = simulate_makespan(compile(schedule), cost.times, scratch).value;
    double after = cost.tables.time.value;  // no data parallelism: only these follow
    for (const auto& rank : cost.ranks) after = std::max(after, rank.after.optimizer.value);
    const double end = evaluator.iteration_time(plan).value;
    CHECK(end >= whole * (1 - 1e-9));
    CHECK(end <= whole * (1 + 1e-9) + cost.tables.time.value + after);
  }
}

}  // namespace evaluator_test
