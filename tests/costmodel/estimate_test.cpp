// Whole plans against the published closed forms: FLOPs, traffic, ZeRO memory, and Megatron's
// micro-batch trade-off.
#include "costmodel/estimate.hpp"

#include <doctest/doctest.h>

#include "costmodel/closed_form.hpp"
#include "tests/costmodel/fixtures.hpp"

using namespace costmodel;
using fixtures::relative_error;

namespace {

struct Case {
  std::int64_t layers, hidden, heads, vocab, sequence, batch;
};
constexpr Case cases[] = {{8, 1024, 16, 51200, 512, 16},
                          {16, 2048, 32, 51200, 2048, 32},
                          {4, 6144, 48, 128 * 401 * 8, 1024, 64},
                          {96, 12288, 96, 51200, 2048, 48}};

Estimate estimated(const Case& c, const ParallelPlan& plan,
                   AttentionKernel kernel = AttentionKernel::unfused) {
  TrainingSpec training = fixtures::training(c.batch, c.sequence);
  training.stack.attention = kernel;
  training.overlap.pp_overlap = plan.vpp > 1;
  const ModelSpec model = fixtures::gpt(c.layers, c.hidden, c.heads, c.vocab, c.sequence);
  const ClusterSpec cluster = fixtures::cluster(plan.devices());
  REQUIRE(violations(plan, model, cluster, training).empty());
  return Evaluator(model, cluster, training).estimate(plan);
}

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
        CHECK(none.hardware_flops.value == none.model_flops.value);
        plan.recompute.granularity = Recomputation::full;
        const Estimate full = estimated(c, plan, kernel);
        const double eq3 = 96 * B * s * l * h * h * (1 + s / (6 * h) + V / (16 * l * h));
        CHECK(relative_error(full.hardware_flops.value, eq3) <= 1e-12);
        CHECK(full.model_flops.value == none.model_flops.value);
        // Selective: the two products of the attention core once more, 4Bs²hl = 72Blsh²·s/18h.
        plan.recompute.granularity = Recomputation::selective;
        const Estimate selective = estimated(c, plan, kernel);
        const double core = 72 * B * s * l * h * h * (1 + 2 * s / (9 * h) + V / (12 * l * h));
        CHECK(relative_error(selective.hardware_flops.value, core) <= 1e-12);
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

TEST_CASE("data-parallel traffic: 2(d-1)/d of the gradients, or (d-1)/d each way under ZeRO-1") {
  const Case c = cases[0];
  for (const int d : {1, 2, 4, 8}) {
    ParallelPlan plan;
    plan.dp = d;
    const double psi =
        parameter_count(fixtures::gpt(c.layers, c.hidden, c.heads, c.vocab, c.sequence));
    const double share = (d - 1.0) / d;
    const double m = static_cast<double>(c.batch / d);
    CAPTURE(d);
    const Traffic none = estimated(c, plan).traffic;
    CHECK(relative_error(none.all_reduce.value, 2 * share * 2 * psi) <= 1e-12);
    CHECK(none.total().value == none.all_reduce.value);
    plan.zero = 1;
    const Traffic one = estimated(c, plan).traffic;
    CHECK(relative_error(one.reduce_scatter.value, share * 2 * psi) <= 1e-12);
    CHECK(relative_error(one.all_gather.value, share * 2 * psi) <= 1e-12);
    plan.zero = 2;  // gradients are scattered after every micro-batch
    CHECK(relative_error(estimated(c, plan).traffic.reduce_scatter.value, m * share * 2 * psi) <=
          1e-12);
    plan.zero = 3;  // 1.5 times ZeRO-1's for each micro-batch: parameters are gathered twice
    const Traffic three = estimated(c, plan).traffic;
    CHECK(relative_error(three.all_gather.value, 2 * m * share * 2 * psi) <= 1e-12);
    CHECK(relative_error(three.total().value, 3 * m * share * 2 * psi) <= 1e-12);
  }
}

TEST_CASE(
    "pipeline traffic: bsh elements a micro-batch and neighbour, bsh/t when the tensor ranks share "
    "it") {
  const Case c = cases[1];
  const ModelSpec model = [&] {
    ModelSpec m = fixtures::gpt(c.layers, c.hidden, c.heads, c.vocab, c.sequence);
    m.tie_embeddings = false;
    return m;
  }();
  const double bsh = 2.0 * static_cast<double>(c.sequence * c.hidden);
  for (const int p : {2, 4, 8}) {
    for (const int t : {1, 4}) {
      for (const bool sp : {false, true}) {
        for (const bool split : {false, true}) {
          if (sp && t == 1) continue;
          CAPTURE(p);
          CAPTURE(t);
          CAPTURE(sp);
          CAPTURE(split);
          TrainingSpec training = fixtures::training(c.batch, c.sequence);
          training.stack.scatter_gather = split;
          ParallelPlan plan;
          plan.pp = p, plan.tp = t, plan.sequence_parallel = sp, plan.micro_batch = 2;
          Evaluator evaluator(model, fixtures::cluster(plan.devices()), training);
          const Bytes one = evaluator.cost(plan).transfer_bytes;
          CHECK(one.value == 2 * bsh / (sp || split ? t : 1));
          const double m = static_cast<double>(c.batch) / 2;
          const Traffic sent = evaluator.estimate(plan).traffic;
          // The device that sends most: an inner rank, with two neighbours, unless the last one's
          // logits outweigh that.
          if (p == 2) CHECK(sent.send.value == one.value * m);
          if (p > 2 && t == 1) CHECK(sent.send.value == one.value * m * 2);
        }
      }
    }
  }
  ParallelPlan alone;
  Evaluator evaluator(model, fixtures::cluster(1), fixtures::training(c.batch, c.sequence));
  CHECK(evaluator.estimate(alone).traffic.total().value == 0);
}

TEST_CASE("the interleaved schedule sends v times as much") {
  const Case c = cases[1];
  ModelSpec model = fixtures::gpt(c.layers, c.hidden, c.heads, c.vocab, c.sequence);
  model.tie_embeddings = false;
  Evaluator evaluator(model, fixtures::cluster(4), fixtures::training(c.batch, c.sequence));
  ParallelPlan plan;
  plan.pp = 4;
  const double plain = evaluator.estimate(plan).traffic.send.value;
  plan.schedule = ScheduleKind::interleaved;
  for (const int v : {2, 4}) {
    plan.vpp = v;
    CHECK(evaluator.estimate(plan).traffic.send.value == v * plain);
  }
}

TEST_CASE("ZeRO memory: 16, 4 + 12/N, 2 + 14/N and 16/N bytes a parameter") {
  for (const Case& c : {cases[0], cases[1]}) {
    const double psi =
        parameter_count(fixtures::gpt(c.layers, c.hidden, c.heads, c.vocab, c.sequence));
    for (const int n : {1, 2, 8, 16}) {
      ParallelPlan plan;
      plan.dp = n;
      const double expected[] = {16 * psi, 4 * psi + 12 * psi / n, 2 * psi + 14 * psi / n,
                                 16 * psi / n};
      for (int zero = 0; zero <= 3; ++zero) {
        CAPTURE(n);
        CAPTURE(zero);
        plan.zero = zero;
        const StageMemory memory = estimated(c, plan).memory.at(0);
        const Bytes states = memory.weights + memory.gradients + memory.optimizer;
        CHECK(relative_error(states.value, expected[zero]) <= 1e-12);
      }
    }
  }
}

TEST_CASE("bytes a parameter by precision and optimizer") {
  TrainingSpec t = fixtures::training(1, 1);
  CHECK(weight_bytes_per_parameter(t) + gradient_bytes_per_parameter(t) +
            optimizer_bytes_per_parameter(t) ==
        16);
  t.gradient_precision = Precision::fp32;
  CHECK(gradient_bytes_per_parameter(t) == 4);  // Megatron's 18 bytes
  t.sgd = true;
  CHECK(optimizer_bytes_per_parameter(t) == 8);
  t.stack.master_weights = false;
  CHECK(optimizer_bytes_per_parameter(t) == 4);
  t.sgd = false;
  t.precision = Precision::fp32;
  CHECK(weight_bytes_per_parameter(t) + gradient_bytes_per_parameter(t) +
            optimizer_bytes_per_parameter(t) ==
        16);
}

TEST_CASE("kept activations follow the schedule: m, min(p - k, m), and 1 + (p-1)/pv of a stage") {
  const Case c = {16, 1024, 16, 51200, 512, 64};
  ParallelPlan plan;
  plan.pp = 4;
  const auto in_flight_on = [&](ScheduleKind kind, int v) {
    plan.schedule = kind;
    plan.vpp = v;
    std::vector<double> counts;
    for (const auto& memory : estimated(c, plan).memory)
      counts.push_back(memory.in_flight_micro_batches);
    return counts;
  };
  CHECK(in_flight_on(ScheduleKind::gpipe, 1) == std::vector<double>{64, 64, 64, 64});
  CHECK(in_flight_on(ScheduleKind::one_f_one_b, 1) == std::vector<double>{4, 3, 2, 1});
  CHECK(in_flight_on(ScheduleKind::serial, 1) == std::vector<double>{1, 1, 1, 1});
  for (const int v : {2, 4}) {  // Korthikanti et al. 2022, section 4.2.3
    CHECK(in_flight_on(ScheduleKind::interleaved, v).front() == 4 * (1 + 3.0 / (4 * v)));
  }
}

TEST_CASE(
    "a pipeline's time is (b'/b + p - 1)(t_f + t_b) within the embedding's and head's share") {
  const Case c = {32, 2048, 16, 51200, 1024, 64};
  ModelSpec model = fixtures::gpt(c.layers, c.hidden, c.heads, c.vocab, c.sequence);
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
        Evaluator evaluator(fixtures::gpt(c.layers, c.hidden, c.heads, c.vocab, c.sequence),
                            fixtures::cluster(plan.devices()), training);
        const Estimate e = evaluator.estimate(plan);
        CHECK(relative_error(e.breakdown.total().value, e.iteration.value) <= 1e-12);
        for (const Seconds part :
             {e.breakdown.compute, e.breakdown.recompute, e.breakdown.tp_comm, e.breakdown.pp_comm,
              e.breakdown.dp_comm, e.breakdown.bubble, e.breakdown.optimizer})
          CHECK(part.value >= -1e-12 * e.iteration.value);
        CHECK(evaluator.iteration_time(plan).value == e.iteration.value);
        CHECK(evaluator.cost(plan).lower_bound.value <= e.iteration.value * (1 + 1e-12));
        CHECK(relative_error(evaluator.timeline(plan).end().value, e.iteration.value) <= 1e-12);
        CHECK(e.peak.value > 0);
        for (const auto& memory : e.memory) CHECK(memory.total() <= e.peak);
      }
    }
  }
}

TEST_CASE("the price of a layer does not depend on what was asked before") {
  const Case c = cases[1];
  const ModelSpec model = fixtures::gpt(c.layers, c.hidden, c.heads, c.vocab, c.sequence);
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
    double after = cost.embedding_reduce.value;  // no data parallelism: only these follow
    for (const Seconds step : cost.optimizer) after = std::max(after, step.value);
    const double end = evaluator.iteration_time(plan).value;
    CHECK(end >= whole * (1 - 1e-9));
    CHECK(end <= whole * (1 + 1e-9) + cost.embedding_reduce.value + after);
  }
}

TEST_CASE("equal shares written out hold what equal shares hold") {
  // Two ways to count what is in flight: by end chunks for equal shares, chunk by chunk for given
  // ones.
  TrainingSpec training = fixtures::training(48, 512);
  training.overlap.pp_overlap = true;
  const ModelSpec model = fixtures::gpt(24, 1024, 16, 51200, 512);
  for (const int v : {2, 3, 6}) {
    ParallelPlan plan;
    plan.pp = 4;
    plan.vpp = v;
    plan.schedule = ScheduleKind::interleaved;
    Evaluator evaluator(model, fixtures::cluster(4), training);
    const auto shared = evaluator.cost(plan).memory;
    plan.stage_layers.assign(static_cast<std::size_t>(4 * v), 24 / (4 * v));
    const auto written = evaluator.cost(plan).memory;
    CHECK(to_string(plan).ends_with("layers " + std::to_string(24 / (4 * v)) + "x" +
                                    std::to_string(4 * v)));
    for (std::size_t r = 0; r < shared.size(); ++r) {
      CHECK(relative_error(written[r].activations.value, shared[r].activations.value) <= 1e-12);
      CHECK(written[r].in_flight_micro_batches == shared[r].in_flight_micro_batches);
    }
  }
}
