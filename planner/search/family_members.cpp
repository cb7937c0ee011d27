#include "planner/search/family_members.hpp"

#include "costmodel/base/parallel_for.hpp"

namespace planner {

using namespace costmodel;

namespace {

std::vector<Estimate> others_of(const Scenario& scenario, const ParallelPlan& plan, Reach reach,
                                const std::function<bool()>& stopped) {
  Scenario s = scenario;
  s.plan.tp = plan.tp;
  s.plan.pp = plan.pp;
  s.plan.dp = plan.dp;
  s.plan.cp = plan.cp;
  s.plan.ep = plan.ep;
  s.search.rows = RankingRows::plans;
  s.search.simpler_within = 0;
  std::vector<Estimate> members = run_strategies(s, reach, 1, {}, stopped).found.plans;
  std::erase_if(members, [&](const Estimate& e) { return e.plan == plan; });
  return members;
}

}  // namespace

FamilyMembers family_members(const Scenario& s, const std::vector<Estimate>& ranked,
                             const SearchMethod& method, const std::function<bool()>& stopped) {
  const Reach asked = method.reach.value_or(usual_reach(s));
  const Reach reach = asked == Reach::even ? Reach::even : Reach::layouts;
  FamilyMembers all(ranked.size());
  share_out(ranked.size(), method.threads, [&](std::size_t i) {
    const bool over = stopped && stopped();
    if (ranked[i].plan.even() && !over) all[i] = others_of(s, ranked[i].plan, reach, stopped);
  });
  return all;
}

}  // namespace planner
