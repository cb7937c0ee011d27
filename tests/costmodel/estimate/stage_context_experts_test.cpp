// Stages with context and expert parallelism of their own: against plain plans, by hand, and their
// rules.
#include <doctest/doctest.h>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/plan/plan_text.hpp"
#include "costmodel/plan/stage_plan.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace stage_context_experts_test {

using namespace costmodel;
using fixtures::contains;
using fixtures::relative_error;

namespace {

constexpr std::int64_t s = 1024, h = 1024;

ModelSpec dense() { return fixtures::gpt(12, h, 16, 51200, s); }

ModelSpec sparse() {
  ModelSpec m = dense();
  m.kind = ModelKind::moe;
  m.gated_mlp = true;
  m.linear_bias = m.qkv_bias = false;
  m.tie_embeddings = false;
  m.dropout = 0;
  m.experts = 8, m.top_k = 2, m.expert_ffn_hidden = 512;
  return m;
}

TrainingSpec training() {
  TrainingSpec t = fixtures::training(96, s);
  t.stack.kernels.attention = AttentionKernel::flash;
  t.stack.offers.context_parallel = true;
  t.stack.offers.max_zero = 3;
  return t;
}

struct Sizes {
  int tp, cp, dp, ep, etp;
  ContextExchange exchange = ContextExchange::p2p;
};

StagePlan stage(const Sizes& sizes, int zero = 0) {
  StagePlan own{sizes.tp, sizes.dp, {}, zero, ""};
  own.cp = sizes.cp;
  if (own.cp > 1) own.cp_comm = sizes.exchange;
  own.ep = sizes.ep;
  own.etp = sizes.etp;
  return own;
}

ParallelPlan plan_of(const std::vector<StagePlan>& stages, std::vector<int> layers,
                     std::int64_t b) {
  ParallelPlan plan;
  plan.pp = static_cast<int>(stages.size());
  for (const StagePlan& own : stages) plan.dp = std::max(plan.dp, own.dp);
  plan.micro_batch = b;
  plan.sequence_parallel = true;
  plan.stages = stages;
  plan.stage_layers = std::move(layers);
  return plan;
}

std::string fault(const ParallelPlan& plan, const ModelSpec& model, const TrainingSpec& t,
                  std::int64_t devices = 16) {
  const ClusterSpec cluster = fixtures::cluster(devices);
  const auto found = violations(plan, model, cluster, t);
  CHECK(is_valid(plan, model, cluster, t) == found.empty());
  return found.empty()
             ? ""
             : found.front().key + ": " + found.front().reason + "; " + found.front().remedy;
}

constexpr auto p2p = ContextExchange::p2p, a2a = ContextExchange::a2a,
               gathered = ContextExchange::all_gather;

}  // namespace

TEST_CASE("stages that share cp, its exchange, ep and etp cost what the plain plan does") {
  struct Case {
    Sizes sizes;
    int pp, zero;
    bool scatter;
  };
  for (const Case& c :
       {Case{{1, 2, 4, 4, 1, p2p}, 2, 0, false}, Case{{2, 4, 1, 2, 2, a2a}, 2, 1, true},
        Case{{1, 4, 2, 1, 1, gathered}, 3, 3, false}, Case{{2, 1, 4, 8, 1, p2p}, 4, 2, false}}) {
    ParallelPlan own = plan_of(
        std::vector<StagePlan>(static_cast<std::size_t>(c.pp), stage(c.sizes, c.zero)), {}, 2);
    own.sequence_parallel = c.sizes.tp > 1;
    ParallelPlan plain = stage_plan(own, 0);
    REQUIRE(plain.stages.empty());
    TrainingSpec t = training();
    t.stack.collectives.scatter_gather = c.scatter;
    const ClusterSpec cluster = fixtures::cluster(plain.devices());
    CHECK(own.devices() == plain.devices());
    REQUIRE(violations(own, sparse(), cluster, t).empty());
    Evaluator evaluator(sparse(), cluster, t);
    const Estimate a = evaluator.estimate(plain), b = evaluator.estimate(own);
    CHECK(relative_error(a.iteration.value, b.iteration.value) < 1e-12);
    CHECK(a.peak == b.peak);
    CHECK(relative_error(a.hardware_flops.value, b.hardware_flops.value) < 1e-12);
    CHECK(relative_error(a.traffic.send.value, b.traffic.send.value) < 1e-12);
    CHECK(relative_error(a.traffic.total().value, b.traffic.total().value) < 1e-12);
    CHECK(a.breakdown.cp_comm.value == doctest::Approx(b.breakdown.cp_comm.value));
    CHECK((b.breakdown.cp_comm.value > 0) == (c.sizes.cp > 1));
    CHECK(a.breakdown.ep_comm.value == doctest::Approx(b.breakdown.ep_comm.value));
    CHECK((b.breakdown.ep_comm.value > 0) == (c.sizes.ep > 1));
    for (std::size_t r = 0; r < a.memory.size(); ++r)
      CHECK(a.memory[r].total() == b.memory[r].total());
  }
}

TEST_CASE("each stage has the times and memory of a pipeline with its cp and ep") {
  const ParallelPlan plan =
      plan_of({stage({2, 1, 4, 1, 1}), stage({1, 4, 2, 4, 1, a2a}, 1), stage({2, 2, 2, 2, 2}, 3)},
              {4, 4, 4}, 1);
  const ClusterSpec cluster = fixtures::cluster(24);
  REQUIRE(violations(plan, sparse(), cluster, training()).empty());
  Evaluator mixed(sparse(), cluster, training()), plain(sparse(), cluster, training());
  const PlanCost cost = mixed.cost(plan);
  CHECK(cost.micro_batches == 24);
  for (std::size_t i = 0; i < 3; ++i) {
    ParallelPlan alike = plan;
    alike.stages.clear();
    alike.tp = plan.stages[i].tp, alike.dp = plan.stages[i].dp, alike.cp = plan.stages[i].cp;
    alike.cp_comm = plan.stages[i].cp_comm;
    alike.ep = plan.stages[i].ep, alike.etp = plan.stages[i].etp;
    alike.micro_batch = 4 / alike.dp;
    alike.zero = plan.stages[i].zero;
    alike.sequence_parallel = alike.tp > 1;
    const PlanCost& own = plain.cost(alike);
    CHECK(cost.times.forward[i] == own.times.forward[i]);
    CHECK(cost.times.backward[i] == own.times.backward[i]);
    CHECK(cost.ranks[i].memory.total() == own.ranks[i].memory.total());
    CHECK(cost.ranks[i].after.gradient_exposed == own.ranks[i].after.gradient_exposed);
    CHECK(cost.ranks[i].after.optimizer == own.ranks[i].after.optimizer);
  }
  // As many layers each, experts dealt out over 1, 4 and 2 x 2 ranks.
  CHECK(cost.ranks[1].weights.experts * 4 == cost.ranks[0].weights.experts);
  CHECK(cost.ranks[2].weights.experts * 4 == cost.ranks[0].weights.experts);
}

TEST_CASE("between stages of different cp a rank takes its part of the sequences, each one once") {
  TrainingSpec t = training();
  const double whole = 4.0 * 2 * s * h * 2;  // sequences x s x h x fp16
  for (const bool scatter : {false, true}) {
    t.stack.collectives.scatter_gather = scatter;
    ParallelPlan plan = plan_of({stage({2, 1, 4, 1, 1}), stage({1, 8, 2, 1, 1})}, {6, 6}, 2);
    plan.sequence_parallel = false;
    const ClusterSpec cluster = fixtures::cluster(24);
    REQUIRE(violations(plan, dense(), cluster, t).empty());
    Evaluator evaluator(dense(), cluster, t);
    const PlanCost& cost = evaluator.cost(plan);
    REQUIRE(cost.boundaries.size() == 1);
    const StageBoundary& b = cost.boundaries.front();
    // 16 ranks take four sequences' eighths each from 8 devices; back, 8 devices take two
    // sequences each from 16, on both tensor ranks unless these gather them.
    CHECK(b.forward.sent.value == doctest::Approx(whole / 8));
    CHECK(b.forward.gathered.value == 0);
    CHECK(b.backward.sent.value == doctest::Approx(whole / (scatter ? 16 : 8)));
    CHECK(b.backward.gathered.value == doctest::Approx(scatter ? whole / 4 / 2 : 0));
  }
}

TEST_CASE("no plan of random stages with cp and ep is faster than its bound; its parts add up") {
  fixtures::Random random(11);
  int tried = 0, context = 0, experts = 0;
  for (int i = 0; i < 300; ++i) {
    std::vector<StagePlan> stages;
    std::vector<int> layers;
    ModelSpec model = sparse();
    model.layers = 0;
    const auto power = [&random](int most) { return 1 << random.integer(0, most); };
    for (int k = 0; k < 2; ++k) {
      const Sizes sizes{power(1), power(2), 0,
                        power(3), power(1), static_cast<ContextExchange>(random.integer(0, 2))};
      stages.push_back(stage(sizes, random.integer(0, 3)));
      stages.back().dp = 8 / (sizes.tp * sizes.cp);
      layers.push_back(random.integer(1, 6));
      model.layers += layers.back();
    }
    TrainingSpec t = training();
    t.overlap.pp_overlap = random.integer(0, 1) == 1;
    t.stack.collectives.scatter_gather = random.integer(0, 1) == 1;
    const ClusterSpec cluster = fixtures::cluster(16);
    const ParallelPlan plan = plan_of(stages, layers, 4);
    if (!is_valid(plan, model, cluster, t)) continue;
    ++tried;
    context += stages[0].cp != stages[1].cp ? 1 : 0;
    experts += stages[0].ep != stages[1].ep ? 1 : 0;
    Evaluator evaluator(model, cluster, t);
    const Estimate e = evaluator.estimate(plan);
    CHECK(evaluator.cost(plan).bound.iteration.value <= e.iteration.value * (1 + 1e-12));
    CHECK(e.breakdown.total().value == doctest::Approx(e.iteration.value));
    CHECK(evaluator.timeline(plan).end().value == doctest::Approx(e.iteration.value));
  }
  CHECK(tried > 100);
  CHECK(context > 50);
  CHECK(experts > 50);
}

TEST_CASE("what a stage's cp or ep breaks is named with the stage") {
  const auto has = [](const std::string& text, const std::string& part) {
    INFO(text);
    CHECK(contains(text, part));
  };
  const std::vector<int> half{6, 6};
  const StagePlan plain = stage({1, 1, 8, 1, 1});
  const TrainingSpec t = training();
  CHECK(fault(plan_of({plain, stage({1, 4, 2, 4, 1})}, half, 1), sparse(), t) == "");
  has(fault(plan_of({plain, stage({1, 4, 1, 1, 1})}, half, 1), dense(), t),
      "stages: the stages' tp x dp x cp add up to 12 devices, but the cluster has 16");
  has(fault(plan_of({plain, stage({1, 1, 8, 2, 1})}, half, 1), dense(), t),
      "stages: stage 1: ep 2 without experts; set ep: 1");
  has(fault(plan_of({stage({1, 1, 8, 16, 1}), plain}, half, 1), sparse(), t),
      "stages: stage 0: ep 16 does not divide the 8 experts");
  has(fault(plan_of({plain, stage({2, 1, 4, 8, 2})}, half, 1), sparse(), t),
      "stages: stage 1: ep 8 x etp 2 = 16 does not divide the 8 ranks of a stage");
  has(fault(
          plan_of({plain, stage({4, 2, 1, 1, 1}), stage({1, 8, 1, 1, 1, a2a})}, {4, 4, 4}, 1),
          [] {
            ModelSpec few = dense();
            few.heads = few.kv_heads = 4, few.head_dim = 256;
            return few;
          }(),
          t, 24),
      "stages: stage 2: cp_comm a2a deals out heads");
  TrainingSpec odd = t;
  odd.sequence = s + 4;
  has(fault(plan_of({plain, stage({1, 4, 2, 1, 1})}, half, 1), dense(), odd),
      "stages: stage 1: the sequence 1028 is not divisible by 2 x cp 4");
  TrainingSpec without = t;
  without.stack.offers.context_parallel = false;
  has(fault(plan_of({plain, stage({1, 4, 2, 1, 1})}, half, 1), dense(), without),
      "stages: stage 1: stack ");
}

TEST_CASE("one line tells cp and ep of each stage, or of all that share them") {
  const StagePlan plain = stage({2, 1, 4, 1, 1}), own = stage({1, 4, 2, 4, 1, a2a});
  CHECK(to_string(plan_of({plain, own}, {6, 6}, 2)) ==
        "p 2 · t x d 2 x 4, 1 x 2 c 4 (a2a) e 4 · 8 sequences a micro-batch · 1f1b · sequence "
        "parallel · recompute none · layers 6x2");
  CHECK(to_string(plan_of({own, own}, {7, 5}, 2)) ==
        "p 2 · t x d 2 of 1 x 2 · 4 sequences a micro-batch · c 4 (a2a) · e 4 · 1f1b · recompute "
        "none · layers 7+5");
}

}  // namespace stage_context_experts_test
