#include "planner/search/grid_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "costmodel/estimate/evaluator.hpp"
#include "planner/search/search_space.hpp"

namespace planner {

using namespace costmodel;

Bytes memory_limit(const Scenario& s) {
  return s.cluster.device.memory * (1 - s.search.memory_margin);
}

std::string margin_key(const SearchLimits& limits) {
  return limits.memory_confidence
             ? fmt::format("search.memory_confidence={:g}", *limits.memory_confidence)
             : "search.memory_margin";
}

std::string chance_text(double probability) {
  constexpr double rounded = 0.005;
  if (probability < rounded) return "under 1 %";
  if (probability > 1 - rounded) return "over 99 %";
  return fmt::format("{:.0f} %", 100 * probability);
}

MemoryFit fit_of(const Estimate& e, double margin) {
  if (!e.fits()) return MemoryFit::exceeds;
  return e.peak <= e.capacity * (1 - margin) ? MemoryFit::fits : MemoryFit::tightly;
}

namespace {

constexpr std::uint64_t family_stride = 1u << 20;  // members are numbered after their family
constexpr std::uint64_t group_stride = 1u << 18;   // ... and after their group of micro-batches

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

// Whether weights, gradients and optimizer states are too large for a rank without anything else.
bool states_overflow(const PlanCost& cost, Bytes limit) {
  return std::ranges::any_of(cost.ranks, [limit](const RankRow& rank) {
    return rank.memory.weights + rank.memory.gradients + rank.memory.optimizer > limit;
  });
}

// What a member's price means for those of its ZeRO stage that recompute more.
struct Priced {
  Seconds bound;     // of theirs: bound_with_more()
  bool fits;         // the member does
  bool none_fits;    // nor do they
  bool none_faster;  // as long as it leads them
};

// Prices one member and keeps it if it fits. What the podium is not open to need not be followed
// through its schedule, which takes as long as a simulation.
Priced price_member(const ParallelPlan& plan, std::uint64_t order, const Podium* podium,
                    const Scenario& scenario, Evaluator& evaluator, SearchResult& result,
                    std::vector<Bounded>& fitting) {
  const Bytes limit = memory_limit(scenario);
  const PlanCost& cost = evaluator.cost(plan);
  const auto may_enter = [&] {
    return podium == nullptr || podium->open_to(cost.bound.iteration, plan);
  };
  if (cost.peak > limit && splits_backward(plan.schedule) && may_enter() &&
      !states_overflow(cost, limit))
    evaluator.cost_within(plan, limit);  // in the same place
  // What may not enter need not be asked of, which takes longer than to price it.
  const bool fits = cost.within(limit);
  const bool refused = fits && podium != nullptr && may_enter() && !podium->takes(plan);
  Priced priced{bound_with_more(cost, plan, scenario), fits && !refused, false, false};
  // With a split backward a longer one may leave a shorter bubble.
  priced.none_faster = priced.bound == cost.bound.iteration && !splits_backward(plan.schedule);
  ++result.statistics.evaluated;
  if (!result.leanest || cost.peak < result.leanest_peak) {
    result.leanest = plan;
    result.leanest_peak = cost.peak;
  }
  if (fits) ++result.statistics.feasible;
  if (!priced.fits) {
    priced.none_fits = !refused && states_overflow(cost, limit);
    return priced;
  }
  fitting.push_back({cost.bound.iteration, order, plan, cost.peak});
  return priced;
}

// Whether those of its ZeRO stage that recompute more need not be priced: they do not fit, which
// counts once something does (else the leanest of all is looked for); the podium is not open to
// them; or only a family's best enters it, and they are no faster, nor simpler, than a member that
// fits.
bool settles(const Priced& priced, const ParallelPlan& plan, const Podium& podium) {
  if (priced.none_fits && podium.has_worst()) return true;
  const bool best = podium.keeps_best() && priced.fits && priced.none_faster;
  return (best || !podium.open_to(priced.bound, plan)) && leads(plan);
}

// Computes memory and bound of the members; returns those that fit, lowest bound first.
std::vector<Bounded> open_family(const Family& family, std::uint64_t first_order,
                                 const Podium* podium, const Scenario& scenario,
                                 Evaluator& evaluator, SearchResult& result) {
  std::vector<Bounded> fitting;
  const MemberChoices choices = member_choices(family, scenario);
  ParallelPlan plan = family.plan;  // each member in turn: most are never priced
  std::array<bool, 4> left{};       // by ZeRO stage
  const auto price_all = [&](bool partial) {
    for (std::size_t i = 0; i < choices.recompute.size() * choices.zero.size(); ++i) {
      plan.recompute = choices.recompute[i / choices.zero.size()];
      plan.zero = choices.zero[i % choices.zero.size()];
      bool& done = left.at(static_cast<std::size_t>(plan.zero));
      if ((plan.recompute.layers > 0) != partial || done) continue;
      const Priced priced =
          price_member(plan, first_order + i, podium, scenario, evaluator, result, fitting);
      done = podium != nullptr && settles(priced, plan, *podium);
    }
  };
  const std::uint64_t fitted = result.statistics.feasible;
  price_all(false);
  if (podium == nullptr || result.statistics.feasible > fitted ||
      !brackets_partial(choices, family, scenario))
    price_all(true);
  std::ranges::sort(fitting, earlier);
  return fitting;
}

void add_near(const std::vector<Bounded>& families, const Podium& podium,
              const SearchLimits& limits, SearchResult& result) {
  if (podium.ranked().empty()) return;
  const Seconds most = podium.ranked().front().time * (1 + limits.simpler_within);
  for (const Bounded& family : families)
    if (family.bound <= most) result.near.push_back({family.bound, family.plan});
}

}  // namespace

SearchResult search(const Scenario& scenario, Evaluator& evaluator,
                    const std::function<bool()>& expired, const SearchScope& scope) {
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
    if (scope.families && !scope.families(family.plan)) continue;
    const int widest = micro_batch_groups_offered(scenario, family.plan).back();
    const Seconds bound = bound_of(family, scenario, [&](const ParallelPlan& plan) {
      return bound_in_groups(evaluator.cost(plan), plan, widest);
    });
    families.push_back({bound, families.size(), family.plan, Bytes(0)});
  }
  std::ranges::sort(families, earlier);
  Podium podium(scenario.search, scope.takes, scope.below);
  for (const Bounded& family : families) {
    if (!podium.open_to(family.bound) || stopped()) break;
    if (!podium.open_to(family.bound, family.plan)) continue;
    Family ordered{family.plan};
    std::uint64_t order = family.order * family_stride;
    for (const int group : micro_batch_groups_offered(scenario, family.plan)) {
      if (stopped() || !podium.open_to(family.bound, family.plan)) break;
      ordered.plan.choices.group = group;
      const auto fitting = open_family(ordered, order, &podium, scenario, evaluator, result);
      std::size_t tried = 0;
      for (; tried < fitting.size() && podium.open_to(fitting[tried].bound, family.plan) &&
             !stopped();
           ++tried) {
        const Bounded& candidate = fitting[tried];
        podium.offer({evaluator.iteration_time(candidate.plan), candidate.peak, candidate.order,
                      candidate.plan});
      }
      counts.simulated += tried;
      if (!result.expired) counts.pruned += fitting.size() - tried;
      order += group_stride;
    }
  }
  if (!result.expired) {
    counts.pruned += space.configurations - counts.evaluated;
    add_near(families, podium, scenario.search, result);
  }
  return finished(podium, std::move(result), evaluator);
}

std::optional<Ranked> simplest_even(const Scenario& s, const std::vector<BoundedPlan>& near,
                                    Seconds most, const Simplicity& least, Evaluator& evaluator) {
  std::vector<std::pair<Simplicity, const ParallelPlan*>> families;
  for (const BoundedPlan& family : near) {
    const Simplicity own = simplicity(family.plan);
    if (family.bound <= most && own <= least) families.emplace_back(own, &family.plan);
  }
  std::ranges::stable_sort(families,
                           [](const auto& a, const auto& b) { return a.first < b.first; });
  std::optional<Ranked> best;
  Simplicity of_best = least;
  SearchResult unused;
  // A member is never simpler than its family.
  for (std::uint64_t f = 0; f < families.size() && families[f].first <= of_best; ++f) {
    Family ordered{*families[f].second};
    std::uint64_t order = f * family_stride;
    for (const int group : micro_batch_groups_offered(s, ordered.plan)) {
      ordered.plan.choices.group = group;
      Podium podium(1, RankingRows::families);
      podium.offer({most, Bytes(0), 0, ordered.plan});
      for (const Bounded& member : open_family(ordered, order, &podium, s, evaluator, unused)) {
        const Simplicity own = simplicity(member.plan);
        const bool as_simple = best && own == of_best;
        if (of_best < own || !podium.open_to(member.bound) ||
            (as_simple && member.bound > best->time))
          continue;
        Ranked found{evaluator.iteration_time(member.plan), member.peak, member.order, member.plan};
        if (found.time > most || (as_simple && !better(found, *best))) continue;
        of_best = own;
        best = std::move(found);
      }
      order += group_stride;
    }
  }
  return best;
}

SearchResult brute_force(const Scenario& scenario, Evaluator& evaluator) {
  const SearchSpace space = enumerate(scenario);
  SearchResult result;
  result.statistics.configurations = space.configurations;
  Podium podium(scenario.search);
  for (std::size_t f = 0; f < space.families.size(); ++f) {
    Family family = space.families[f];
    std::uint64_t order = f * family_stride;
    for (const int group : micro_batch_groups_offered(scenario, family.plan)) {
      family.plan.choices.group = group;
      for (const Bounded& candidate :
           open_family(family, order, nullptr, scenario, evaluator, result)) {
        ++result.statistics.simulated;
        podium.offer({evaluator.iteration_time(candidate.plan), candidate.peak, candidate.order,
                      candidate.plan});
      }
      order += group_stride;
    }
  }
  return finished(podium, std::move(result), evaluator);
}

}  // namespace planner
