#include "planner/search/sharded_stage.hpp"

#include "costmodel/estimate/evaluator.hpp"
#include "planner/search/best_plans.hpp"
#include "planner/search/grid_search.hpp"

namespace planner {

using namespace costmodel;

namespace {

template <class T, class U>
bool leaves_open(const std::optional<T>& fixed, const U& value) {
  return !fixed || *fixed == value;
}

// Whether the plan keeps what the scenario fixes of what a sharding decides.
bool keeps_request(const ParallelPlan& p, const PlanRequest& r) {
  return leaves_open(r.tp, p.tp) && leaves_open(r.dp, p.dp) && leaves_open(r.cp, p.cp) &&
         leaves_open(r.ep, p.ep) && leaves_open(r.etp, p.etp) && leaves_open(r.zero, p.zero) &&
         leaves_open(r.micro_batch, p.micro_batch) &&
         (p.cp == 1 || leaves_open(r.cp_comm, p.cp_comm)) &&
         (p.tp == 1 || leaves_open(r.sequence_parallel, p.sequence_parallel));
}

std::string why_not(const ParallelPlan& plan, const Scenario& s) {
  const auto broken = violations(plan, s.model, s.cluster, s.training);
  return broken.empty() ? "the scenario's plan says otherwise" : broken.front().reason;
}

}  // namespace

ShardedStage shard_plan(const Scenario& scenario, const Estimate& plan, Evaluator& evaluator,
                        const std::function<bool()>& expired) {
  const Bytes limit = memory_limit(scenario);
  ShardedStage s{shard_stage(critical_stage(plan, limit, evaluator), plan.plan, evaluator, expired),
                 {},
                 {},
                 {},
                 {}};
  const std::vector<int>& choice = s.sharding.found.choice;
  if (choice.empty()) return s;
  const auto allowed = [&](const ParallelPlan& p) {
    return keeps_request(p, scenario.plan) &&
           is_valid(p, scenario.model, scenario.cluster, scenario.training);
  };
  s.as_plan = nearest_plan(s.sharding.graph, choice, plan.plan, allowed);
  const bool exact = s.as_plan && s.as_plan->unlike.empty();
  if (!exact) {
    s.refused = nearest_plan(s.sharding.graph, choice, plan.plan, [](const auto&) { return true; });
  }
  const bool nearer =
      s.refused && (!s.as_plan || s.refused->unlike.size() < s.as_plan->unlike.size());
  if (nearer) {
    s.reason = why_not(s.refused->plan, scenario);
  } else {
    s.refused.reset();
  }
  if (!s.as_plan) return s;
  s.estimate = evaluator.estimate(s.as_plan->plan);
  s.same = s.as_plan->plan == plan.plan;
  s.fits = s.estimate->peak <= limit;
  s.better = s.fits && s.estimate->iteration * worth_words < plan.iteration;
  return s;
}

}  // namespace planner
