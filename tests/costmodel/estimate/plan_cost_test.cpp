// The stage-cost table: rows that stages share are those that each would have alone, and a table
// does not depend on those that were computed before it.
#include <doctest/doctest.h>

#include <vector>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/plan/plan_text.hpp"
#include "tests/costmodel/support/estimated.hpp"

namespace plan_cost_test {

using namespace costmodel;

constexpr fixtures::Case model{24, 1024, 16, 51200, 512, 64};

Evaluator evaluator() {
  TrainingSpec training = fixtures::training(model.batch, model.sequence);
  training.overlap.pp_overlap = true;
  return {fixtures::gpt(model), fixtures::cluster(64), training};
}

std::vector<ParallelPlan> plans() {
  std::vector<ParallelPlan> all;
  for (const int zero : {0, 1, 2, 3}) {
    for (const int pp : {1, 2, 8}) {
      for (const int vpp : {1, 3}) {
        if (pp == 1 && vpp > 1) continue;
        ParallelPlan plan;
        plan.tp = 2;
        plan.pp = pp;
        plan.dp = 4;
        plan.vpp = vpp;
        plan.zero = zero;
        if (vpp > 1) plan.schedule = ScheduleKind::interleaved;
        if (pp == 2) plan.recompute = {Recomputation::full, 2};
        all.push_back(plan);
      }
    }
  }
  return all;
}

bool same(const Cost& a, const Cost& b) {
  return a.time() == b.time() && a.model == b.model && a.traffic == b.traffic;
}

void check_same(const PlanCost& a, const PlanCost& b) {
  REQUIRE(a.stages.size() == b.stages.size());
  for (std::size_t k = 0; k < a.stages.size(); ++k) {
    CAPTURE(k);
    CHECK(a.stages[k].layers == b.stages[k].layers);
    CHECK(same(a.stages[k].forward, b.stages[k].forward));
    CHECK(same(a.stages[k].backward, b.stages[k].backward));
    CHECK(same(a.stages[k].recompute, b.stages[k].recompute));
    CHECK(a.stages[k].zero_forward == b.stages[k].zero_forward);
    CHECK(a.stages[k].zero_backward == b.stages[k].zero_backward);
    CHECK(a.times.forward[k] == b.times.forward[k]);
    CHECK(a.times.backward[k] == b.times.backward[k]);
  }
  REQUIRE(a.ranks.size() == b.ranks.size());
  for (std::size_t r = 0; r < a.ranks.size(); ++r) {
    CAPTURE(r);
    CHECK(a.ranks[r].weights == b.ranks[r].weights);
    CHECK(a.ranks[r].after.gradient_exposed == b.ranks[r].after.gradient_exposed);
    CHECK(a.ranks[r].after.optimizer == b.ranks[r].after.optimizer);
    CHECK(a.ranks[r].memory.total() == b.ranks[r].memory.total());
  }
  CHECK(a.peak == b.peak);
  CHECK(a.bound.iteration == b.bound.iteration);
}

TEST_CASE("a table is the same whatever was priced before") {
  Evaluator used = evaluator();
  for (const ParallelPlan& plan : plans()) {
    CAPTURE(to_string(plan));
    Evaluator fresh = evaluator();
    check_same(used.cost(plan), fresh.cost(plan));
  }
}

TEST_CASE("a stage's row is the sum of its layers, and ZeRO's on its own rank's weights") {
  for (const ParallelPlan& plan : plans()) {
    CAPTURE(to_string(plan));
    Evaluator all = evaluator();
    const PlanCost cost = all.cost(plan);
    const LayerCost& block = all.layer(LayerKind::block, plan, Recomputed::nothing);
    for (std::size_t k = 1; k + 1 < cost.stages.size(); ++k) {
      const StageRow& row = cost.stages[k];
      CHECK(fixtures::relative_error(row.forward.compute.value,
                                     row.layers.number[0] * block.forward.compute.value) <= 1e-12);
      CHECK((row.zero_backward.value > 0) == (plan.zero >= 2));
    }
    if (plan.pp < 8 || plan.vpp == 1 || plan.zero < 2) continue;
    // Of the second chunk's stages the first shares its rank with the embedding.
    CHECK(cost.stages[8].forward.time() == cost.stages[9].forward.time());
    CHECK(cost.stages[8].zero_backward > cost.stages[9].zero_backward);
  }
}

TEST_CASE("the fullest rank has the peak, the heaviest the largest message") {
  for (const ParallelPlan& plan : plans()) {
    CAPTURE(to_string(plan));
    Evaluator all = evaluator();
    const PlanCost& cost = all.cost(plan);
    double most = 0;
    for (const RankRow& rank : cost.ranks) {
      CHECK(rank.memory.total() <= cost.peak);
      most = std::max(most, rank.weights.all);
    }
    CHECK(cost.ranks[cost.fullest].memory.total() == cost.peak);
    CHECK(cost.gradient_bytes.value == 2 * most);
  }
}

}  // namespace plan_cost_test
