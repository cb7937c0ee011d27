// Communication that is hidden: what collectives take alone, less what is exposed of them.
#include "costmodel/estimate/hidden_time.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/plan/plan_rules.hpp"
#include "costmodel/plan/plan_text.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace hidden_time_test {

using namespace costmodel;
using fixtures::relative_error;

namespace {

struct Priced {
  Estimate estimate;
  HiddenTime hidden;
};

const ModelSpec dense = fixtures::gpt(16, 2048, 32, 51200, 2048);

// With `prefetch` ZeRO-3 gathers a layer's parameters during the layer before.
Priced priced(const ParallelPlan& plan, const Overlap& overlap, bool prefetch = false) {
  TrainingSpec training = fixtures::training(32, 2048);
  training.overlap = overlap;
  training.stack.zero.prefetch = prefetch;
  training.stack.kernels.attention = AttentionKernel::flash;
  training.stack.offers.context_parallel = true;
  const ClusterSpec cluster = fixtures::cluster(plan.devices());
  REQUIRE(violations(plan, dense, cluster, training).empty());
  Evaluator evaluator(dense, cluster, training);
  Estimate estimate = evaluator.estimate(plan);
  const HiddenTime hidden = hidden_time(estimate, evaluator);
  return {std::move(estimate), hidden};
}

// What is exposed and what is hidden, of a plan with nothing beside its communication and with
// `overlap`.
struct Pair {
  Priced off, on;
};
Pair pair_of(const ParallelPlan& plan, const Overlap& overlap) {
  return {priced(plan, {}), priced(plan, overlap)};
}

void check_nothing(const HiddenTime& hidden) { CHECK(hidden.total() == Seconds(0)); }

}  // namespace

TEST_CASE("without a switch nothing is hidden; with it, what is no longer exposed") {
  struct Switch {
    const char* name;
    ParallelPlan plan;
    Overlap overlap;
    Seconds Breakdown::*exposed;
    Seconds HiddenTime::*hidden;
  };
  ParallelPlan data, sharded, tensor;
  data.dp = 8;
  sharded.dp = 8, sharded.zero = 1;
  tensor.tp = 4, tensor.sequence_parallel = true;
  std::vector<Switch> switches{
      {"gradient reduction", data, {}, &Breakdown::dp_comm, &HiddenTime::dp_comm},
      {"parameter gather", sharded, {}, &Breakdown::dp_comm, &HiddenTime::dp_comm},
      {"tensor parallel", tensor, {}, &Breakdown::tp_comm, &HiddenTime::tp_comm}};
  switches[0].overlap.overlap_grad_reduce = true;
  switches[1].overlap.overlap_param_gather = true;
  switches[2].overlap.tp_comm_overlap = true;
  for (const Switch& s : switches) {
    CAPTURE(s.name);
    const auto [off, on] = pair_of(s.plan, s.overlap);
    check_nothing(off.hidden);
    const Seconds alone = off.estimate.breakdown.*s.exposed,
                  exposed = on.estimate.breakdown.*s.exposed, hidden = on.hidden.*s.hidden;
    CHECK(hidden > Seconds(0));
    CHECK(exposed < alone);
    CHECK(relative_error((exposed + hidden).value, alone.value) <= 1e-12);
    CHECK(relative_error(hidden.value, on.hidden.total().value) <= 1e-12);
    CHECK(on.estimate.iteration < off.estimate.iteration);
  }
}

TEST_CASE("ZeRO-2 and -3 hide what they send behind the layers") {
  for (const int zero : {2, 3}) {
    CAPTURE(zero);
    ParallelPlan plan;
    plan.dp = 8, plan.zero = zero;
    Overlap overlap;
    overlap.overlap_grad_reduce = true;
    const Priced off = priced(plan, {}), on = priced(plan, overlap, true);
    check_nothing(off.hidden);
    CHECK(on.hidden.dp_comm > Seconds(0));
    const double alone = off.estimate.breakdown.dp_comm.value;
    CHECK(relative_error((on.estimate.breakdown.dp_comm + on.hidden.dp_comm).value, alone) <=
          1e-12);
  }
}

TEST_CASE("a ring of keys is sent beside attention") {
  ParallelPlan plan;
  plan.cp = 4;
  const Priced ring = priced(plan, {});
  CHECK(ring.hidden.cp_comm > Seconds(0));
  CHECK(relative_error(ring.hidden.total().value, ring.hidden.cp_comm.value) <= 1e-12);
}

TEST_CASE("one device has nothing to hide") {
  Overlap all;
  all.overlap_grad_reduce = all.overlap_param_gather = all.tp_comm_overlap = all.pp_overlap = true;
  check_nothing(priced({}, all).hidden);
}

TEST_CASE("transfers are hidden beside computation: what the stage sends, less what it waits for") {
  ParallelPlan plan;
  plan.pp = 4;
  Overlap overlap;
  overlap.pp_overlap = true;
  const auto [off, on] = pair_of(plan, overlap);
  for (const Priced& one : {off, on}) {
    TrainingSpec training = fixtures::training(32, 2048);
    Evaluator evaluator(dense, fixtures::cluster(4), training);
    const PlanCost& cost = evaluator.cost(plan);
    const Seconds sends =
        sends_alone(cost, plan, static_cast<std::size_t>(one.estimate.critical_rank));
    // The first stage sends forward only, those between in both directions.
    CHECK(sends_alone(cost, plan, 0) == 32 * cost.times.transfer);
    CHECK(sends_alone(cost, plan, 1) == 64 * cost.times.transfer);
    CHECK(sends_alone(cost, plan, 3) == 32 * cost.times.transfer);
    CHECK(relative_error((one.estimate.breakdown.pp_comm + one.hidden.pp_comm).value,
                         max(sends, one.estimate.breakdown.pp_comm).value) <= 1e-12);
  }
  CHECK(on.hidden.pp_comm > off.hidden.pp_comm);
  CHECK(on.estimate.breakdown.pp_comm < off.estimate.breakdown.pp_comm);
}

TEST_CASE("what a stack overlaps of sharded weights and a scenario switches off is exposed") {
  ParallelPlan plan;
  plan.dp = 4, plan.zero = 3;
  const auto exposed = [&](bool gathers, bool gradients) {
    TrainingSpec training = fixtures::training(32, 2048);
    training.stack.zero.prefetch = true;
    training.stack.overlap.overlap_param_gather = training.stack.overlap.overlap_grad_reduce = true;
    training.overlap.overlap_param_gather = gathers;
    training.overlap.overlap_grad_reduce = gradients;
    return Evaluator(dense, fixtures::cluster(4), training).estimate(plan).breakdown.dp_comm;
  };
  CHECK(exposed(true, true) < exposed(false, true));
  CHECK(exposed(true, true) < exposed(true, false));
  CHECK(exposed(false, true) < exposed(false, false));
  CHECK(exposed(true, false) < exposed(false, false));
}

TEST_CASE("an exchange of experts beside another micro-batch is hidden") {
  ModelSpec model = dense;
  model.experts = 8, model.top_k = 2, model.expert_ffn_hidden = model.ffn_hidden;
  ParallelPlan plan;
  plan.pp = 2, plan.dp = 4, plan.ep = 4, plan.vpp = 2;
  plan.schedule = ScheduleKind::interleaved;
  TrainingSpec training = fixtures::training(64, 2048);
  training.overlap.pp_overlap = true;
  const ClusterSpec cluster = fixtures::cluster(8);
  Evaluator evaluator(model, cluster, training);
  const Estimate off = evaluator.estimate(plan);
  const HiddenTime none = hidden_time(off, evaluator);
  CHECK(none.ep_comm == Seconds(0));
  plan.experts.overlap = true;
  const Estimate on = evaluator.estimate(plan);
  const HiddenTime beside = hidden_time(on, evaluator);
  CHECK(beside.ep_comm > Seconds(0));
  CHECK(relative_error((on.breakdown.ep_comm + beside.ep_comm).value,
                       off.breakdown.ep_comm.value) <= 1e-12);
}

}  // namespace hidden_time_test
