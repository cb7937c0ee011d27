// What would help: each change is one that the cost model prices so.
#include "planner/diagnosis/job_changes.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "costmodel/estimate/evaluator.hpp"
#include "planner/search/grid_search.hpp"
#include "tests/planner/support/planted_logs.hpp"

namespace job_changes_test {

using namespace planner;

namespace {

struct Asked {
  costmodel::Scenario scenario;
  costmodel::Estimate estimate;

  explicit Asked(const std::string& name, const std::vector<std::string>& assignments = {}) {
    for (const auto& one : planted::cases()) {
      if (one.name == name)
        scenario = costmodel::load_scenario(planted::file_of(one, ".yaml"), fixtures::configs(),
                                            assignments);
    }
    costmodel::Evaluator evaluator(scenario.model, scenario.cluster, scenario.training);
    estimate = evaluator.estimate(resolve_plan(scenario));
  }
};

}  // namespace

TEST_CASE("changes are faster, fit, come best first, and have an interval around them") {
  const Asked asked("megatron_slow_node", {"plan.recompute=full"});
  const auto changes = helpful_changes(asked.scenario, asked.estimate);
  REQUIRE_FALSE(changes.empty());
  CHECK(changes.size() <= 5);
  double last = 0;
  for (const JobChange& c : changes) {
    CAPTURE(c.knob);
    CHECK(c.ratio >= last);
    CHECK(c.ratio < 1);
    CHECK(c.low < c.ratio);
    CHECK(c.ratio < c.high);
    CHECK(c.probability > 0.5);
    CHECK(c.probability < 1);
    CHECK(c.peak <= asked.estimate.capacity);
    last = c.ratio;
  }
  CHECK(std::ranges::any_of(changes, [](const auto& c) {
    return c.knob == "recompute" && c.change == "full -> none" && c.breaks_fixed;
  }));
  CHECK(helpful_changes(asked.scenario, asked.estimate, 1).size() == 1);
}

TEST_CASE("a switch that is off is tried where the framework has it") {
  const Asked off("megatron_no_overlap", {"training.overlap.overlap_grad_reduce=false"});
  const auto changes = helpful_changes(off.scenario, off.estimate);
  const auto at = std::ranges::find(changes, "overlap_grad_reduce", &JobChange::knob);
  REQUIRE(at != changes.end());
  CHECK(at->change == "off -> on");
  CHECK(std::ranges::find(changes, "compile", &JobChange::knob) == changes.end());
}

TEST_CASE("the best plan is the search's, whatever the scenario fixes") {
  const Asked asked("megatron_slow_node");
  const auto best = best_plan(asked.scenario, asked.estimate);
  REQUIRE(best);
  auto free = asked.scenario;
  free.plan = {};
  costmodel::Evaluator evaluator(free.model, free.cluster, free.training);
  const auto found = search(free, evaluator);
  CHECK(best->estimate.iteration == found.plans.front().iteration);
  CHECK(best->change.ratio ==
        doctest::Approx(found.plans.front().iteration / asked.estimate.iteration));
  CHECK(best->change.ratio <= 1);
  CHECK_FALSE(best_plan(asked.scenario, asked.estimate, 1, [] { return true; }));
}

}  // namespace job_changes_test
