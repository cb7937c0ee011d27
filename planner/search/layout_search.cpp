#include "planner/search/layout_search.hpp"

#include <algorithm>
#include <atomic>

#include "costmodel/base/parallel_for.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/estimate/layer_mix.hpp"
#include "planner/search/best_plans.hpp"
#include "planner/search/family_search.hpp"

namespace planner {

using namespace costmodel;

namespace {

// The best even plan stands for layouts that are quicker, but not by what they have to be.
std::vector<ParallelPlan> worth_telling(const std::vector<Ranked>& ranked,
                                        const SearchResult& even) {
  std::vector<ParallelPlan> plans;
  for (const Ranked& r : ranked) {
    const Seconds plain = even.plans.empty() ? Seconds(0) : even.plans.front().iteration;
    const bool worth = r.time >= plain || r.time * worth_words < plain;
    const ParallelPlan& plan = worth ? r.plan : even.plans.front().plan;
    if (std::ranges::find(plans, plan) == plans.end()) plans.push_back(plan);
  }
  return plans;
}

void offer_new(Podium& podium, const Ranked& candidate) {
  const auto& ranked = podium.ranked();
  const bool known =
      std::ranges::any_of(ranked, [&](const Ranked& r) { return r.plan == candidate.plan; });
  if (!known) podium.offer(candidate);
}

}  // namespace

LayoutSearch search_layouts(const Scenario& s, const SearchResult& even, int threads,
                            const std::function<bool()>& expired, std::uint64_t effort) {
  Podium podium(s.search);
  for (const auto& e : even.plans) podium.offer({e.iteration, e.peak, 0, e.plan});
  const auto families = bounded_families(s);
  LayoutSearch result;
  result.families = families.size();
  result.lower_bound =
      even.plans.empty() ? Seconds(std::numeric_limits<double>::infinity()) : even.lower_bound;
  // Each fixed batch of families sees the same ranking, for any number of threads.
  constexpr std::size_t batch = 16;
  constexpr std::uint64_t families_share = 4;  // a family's part of the effort
  std::vector<FamilySearch> workers;
  for (int i = 0; i < std::max(1, threads); ++i)
    workers.emplace_back(s, podium, expired, effort / families_share);
  std::size_t next = 0;
  bool stopped = false;
  while (next < families.size() && podium.open_to(families[next].bound) && !stopped) {
    std::vector<const BoundedFamily*> open;
    for (; next < families.size() && open.size() < batch; ++next) {
      const BoundedFamily& family = families[next];
      if (podium.open_to(family.bound, family.plan)) open.push_back(&family);
    }
    std::vector<OpenedFamily> opened(open.size());
    std::atomic<std::size_t> taken{0};
    const auto work = [&](FamilySearch& worker) {
      for (std::size_t i; (i = taken++) < open.size();) opened[i] = worker.open(*open[i]);
    };
    share_out(workers.size(), threads, [&](std::size_t i) { work(workers[i]); });
    for (const OpenedFamily& o : opened) {
      for (const Ranked& found : o.found) offer_new(podium, found);
      result.lower_bound = min(result.lower_bound, o.bound);
      result.sliced += o.sliced;
      result.improved += o.improved;
      result.effort += o.effort;
      result.spent |= o.spent;
      result.expired |= o.expired;
      stopped |= o.expired && !o.spent;
      ++result.opened;
    }
    stopped |= result.effort > effort;
  }
  if (next < families.size() && podium.open_to(families[next].bound)) {
    result.spent |= result.effort > effort;
    result.expired |= stopped;
  }
  if (next < families.size()) result.lower_bound = min(result.lower_bound, families[next].bound);
  Evaluator evaluator(s.model, s.cluster, s.training);
  for (const ParallelPlan& plan : worth_telling(podium.ranked(), even))
    result.plans.push_back(evaluator.estimate(plan));
  if (!result.plans.empty())
    result.lower_bound = min(result.lower_bound, result.plans.front().iteration);
  return result;
}

}  // namespace planner
