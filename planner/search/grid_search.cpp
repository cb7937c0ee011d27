#include "planner/search/grid_search.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "costmodel/estimate/evaluator.hpp"
#include "planner/search/best_plans.hpp"
#include "planner/search/search_space.hpp"

namespace planner {

using costmodel::Bytes;
using costmodel::Evaluator;
using costmodel::ParallelPlan;
using costmodel::PlanCost;
using costmodel::Scenario;
using costmodel::Seconds;

Bytes memory_limit(const Scenario& s) {
  return s.cluster.device.memory * (1 - s.search.memory_margin);
}

MemoryFit fit_of(const costmodel::Estimate& e, double margin) {
  if (!e.fits()) return MemoryFit::exceeds;
  return e.peak <= e.capacity * (1 - margin) ? MemoryFit::fits : MemoryFit::tightly;
}

namespace {

struct Bounded {
  Seconds bound;
  std::uint64_t order;
  ParallelPlan plan;
  Bytes peak;
};

bool earlier(const Bounded& a, const Bounded& b) {
  return a.bound != b.bound ? a.bound < b.bound : a.order < b.order;
}

SearchResult finished(const Podium& podium, SearchResult result, Evaluator& evaluator) {
  for (const Ranked& r : podium.ranked()) result.plans.push_back(evaluator.estimate(r.plan));
  if (!result.plans.empty() && !result.expired) result.lower_bound = result.plans.front().iteration;
  return result;
}

// Prices one member and keeps it if it fits. Returns bound_with_more().
Seconds price_member(const ParallelPlan& plan, std::uint64_t order, const Scenario& scenario,
                     Evaluator& evaluator, SearchResult& result, std::vector<Bounded>& fitting) {
  const PlanCost& cost = evaluator.cost(plan);
  const Seconds with_more = bound_with_more(cost, plan, scenario);
  ++result.statistics.evaluated;
  if (!result.leanest || cost.peak < result.leanest_peak) {
    result.leanest = plan;
    result.leanest_peak = cost.peak;
  }
  if (cost.peak > memory_limit(scenario)) return with_more;
  ++result.statistics.feasible;
  fitting.push_back({cost.bound.iteration, order, plan, cost.peak});
  return with_more;
}

// Computes memory and bound of the members; returns those that fit, lowest bound first. A ZeRO
// stage is left when the podium is not open to a member that leads the others.
std::vector<Bounded> open_family(const Family& family, std::uint64_t first_order,
                                 const Podium* podium, const Scenario& scenario,
                                 Evaluator& evaluator, SearchResult& result) {
  std::vector<Bounded> fitting;
  const auto plans = members(family, scenario);  // those that recompute less come first
  std::array<bool, 4> left{};                    // by ZeRO stage
  const auto price_all = [&](bool partial) {
    for (std::size_t i = 0; i < plans.size(); ++i) {
      bool& done = left.at(static_cast<std::size_t>(plans[i].zero));
      if ((plans[i].recompute.layers > 0) != partial || done) continue;
      const Seconds bound =
          price_member(plans[i], first_order + i, scenario, evaluator, result, fitting);
      done = podium != nullptr && !podium->open_to(bound) && leads(plans[i], scenario);
    }
  };
  price_all(false);
  if (podium == nullptr || !fitting.empty() || !brackets_partial(plans, scenario.model))
    price_all(true);
  std::sort(fitting.begin(), fitting.end(), earlier);
  return fitting;
}

}  // namespace

SearchResult search(const Scenario& scenario, Evaluator& evaluator,
                    const std::function<bool()>& expired) {
  const SearchSpace space = enumerate(scenario);
  SearchResult result;
  auto& counts = result.statistics;
  counts.configurations = space.configurations;
  const auto stopped = [&] {
    result.expired = result.expired || (expired && expired());
    return result.expired;
  };
  std::vector<Bounded> families;
  families.reserve(space.families.size());
  for (const Family& family : space.families) {
    if (stopped()) break;
    const Seconds bound = bound_of(family, scenario, [&](const ParallelPlan& plan) {
      return evaluator.cost(plan).bound.pipeline;
    });
    families.push_back({bound, families.size(), family.plan, Bytes(0)});
  }
  std::sort(families.begin(), families.end(), earlier);
  Podium podium(static_cast<std::size_t>(scenario.search.top));
  constexpr std::uint64_t family_stride = 1u << 20;  // members are numbered after their family
  for (const Bounded& family : families) {
    if (!podium.open_to(family.bound) || stopped()) break;
    const auto fitting = open_family({family.plan}, family.order * family_stride, &podium, scenario,
                                     evaluator, result);
    std::size_t tried = 0;
    for (; tried < fitting.size() && podium.open_to(fitting[tried].bound) && !stopped(); ++tried) {
      const Bounded& candidate = fitting[tried];
      podium.offer({evaluator.iteration_time(candidate.plan), candidate.peak, candidate.order,
                    candidate.plan});
    }
    counts.simulated += tried;
    if (!result.expired) counts.pruned += fitting.size() - tried;
  }
  if (!result.expired) counts.pruned += space.configurations - counts.evaluated;
  return finished(podium, std::move(result), evaluator);
}

SearchResult brute_force(const Scenario& scenario, Evaluator& evaluator) {
  const SearchSpace space = enumerate(scenario);
  SearchResult result;
  result.statistics.configurations = space.configurations;
  Podium podium(static_cast<std::size_t>(scenario.search.top));
  constexpr std::uint64_t family_stride = 1u << 20;
  for (std::size_t f = 0; f < space.families.size(); ++f) {
    for (const Bounded& candidate :
         open_family(space.families[f], f * family_stride, nullptr, scenario, evaluator, result)) {
      ++result.statistics.simulated;
      podium.offer({evaluator.iteration_time(candidate.plan), candidate.peak, candidate.order,
                    candidate.plan});
    }
  }
  return finished(podium, std::move(result), evaluator);
}

}  // namespace planner
