#include "planner/search/simplest_plan.hpp"

#include <algorithm>
#include <utility>

#include "costmodel/estimate/evaluator.hpp"
#include "planner/search/best_plans.hpp"
#include "planner/search/family_search.hpp"
#include "planner/search/layout_search.hpp"
#include "planner/search/simplicity.hpp"

namespace planner {

using namespace costmodel;

Seconds most_time(Seconds fastest, const Scenario& scenario) {
  return fastest * (1 + scenario.search.simpler_within);
}

Estimate simplest_plan(const Scenario& s, const std::vector<Estimate>& ranked,
                       const SearchResult& even, Evaluator& evaluator) {
  if (s.search.simpler_within == 0) return ranked.front();
  const Seconds most = most_time(ranked.front().iteration, s);
  const Estimate* best = &ranked.front();
  for (const Estimate& e : ranked)
    if (e.iteration <= most && simplicity(e.plan) < simplicity(best->plan)) best = &e;
  const Simplicity known = simplicity(best->plan);
  const auto plain = simplest_even(s, even.near, most, known, evaluator);
  // The even one where they tie, so that the ranking's length does not matter.
  if (!plain || (simplicity(plain->plan) == known && best->iteration < plain->time)) return *best;
  return plain->plan == best->plan ? *best : evaluator.estimate(plain->plan);
}

std::optional<ParallelPlan> fewer_virtual_stages(const Scenario& scenario, const ParallelPlan& plan,
                                                 Seconds most,
                                                 const std::function<bool()>& stopped) {
  if (!simplicity(plan).uneven_layers || !plan.even() || scenario.plan.vpp ||
      plan.schedule != usual_schedule(plan.vpp))
    return {};
  ParallelPlan family = plan;
  family.vpp = 1;
  family.schedule = usual_schedule(1);
  family.recompute = {};
  family.zero = 0;
  family.stage_layers.clear();
  Podium podium(1);
  constexpr double start = 1.1;  // a cut that takes so much longer may be improved to `most`
  podium.offer({most * start, Bytes(0), 0, plan});
  Scenario s = scenario;
  constexpr std::uint64_t effort = usual_effort / 128;  // a tenth of a second or so
  FamilySearch search(s, podium, stopped, effort);
  for (int chunks = 1; chunks < plan.vpp; ++chunks) {
    s.plan.vpp = chunks;
    std::optional<Ranked> best;
    for (Ranked& found : search.open({Seconds(0), 1, family}).found)
      if (found.time <= most && (!best || better(found, *best))) best = std::move(found);
    if (best) return std::move(best->plan);
  }
  return {};
}

std::vector<Estimate> chosen_first(std::vector<Estimate> ranked, const Estimate& chosen,
                                   const Scenario& s) {
  const std::size_t most = std::max(ranked.size(), static_cast<std::size_t>(s.search.top));
  std::erase_if(ranked, [&](const Estimate& e) {
    if (s.search.rows == RankingRows::plans) return e.plan == chosen.plan;
    return e.plan.even() == chosen.plan.even() && e.plan.pipelines() == chosen.plan.pipelines() &&
           one_family(e.plan, chosen.plan);
  });
  ranked.insert(ranked.begin(), chosen);
  if (ranked.size() > most) ranked.pop_back();
  return ranked;
}

}  // namespace planner
