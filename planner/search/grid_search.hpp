// The best plans of a scenario, with a proof: families get a lower bound and are opened in the
// order of the bounds; the search ends when the next bound cannot improve on the worst plan in the
// ranking.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/estimate/estimate.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/search/best_plans.hpp"
#include "planner/search/simplicity.hpp"

namespace planner {

struct SearchStatistics {
  std::uint64_t configurations = 0;  // valid plans in the space
  std::uint64_t evaluated = 0;       // whose memory and bound were computed
  std::uint64_t feasible = 0;        // those that fit in memory
  std::uint64_t pruned = 0;          // never opened, or not simulated, because of their bound
  std::uint64_t simulated = 0;
};

// A family's representative (Family), and a bound of its members.
struct BoundedPlan {
  costmodel::Seconds bound;
  costmodel::ParallelPlan plan;
};

struct SearchResult {
  std::vector<costmodel::Estimate> plans;  // fastest first; empty when nothing fits
  // The families that may have a plan within search.simpler_within of the fastest; none if expired.
  std::vector<BoundedPlan> near;
  SearchStatistics statistics;
  costmodel::Seconds lower_bound;  // of all plans of the space, unless expired
  bool expired = false;            // stopped early: the best plans so far
  // The evaluated plan of least peak memory, for the diagnosis when nothing fits.
  std::optional<costmodel::ParallelPlan> leanest;
  costmodel::Bytes leanest_peak;
};

// What of the space a search looks at and ranks.
struct SearchScope {
  PlanFilter takes = {};     // a plan that it refuses is one that does not fit
  PlanFilter families = {};  // by their representatives
  costmodel::Seconds below = costmodel::Seconds(infinity);  // what takes longer is not ranked
};

// Branch-and-bound search. Deterministic: ties go to the plan with the smaller peak memory, then to
// the first in the enumeration. Polls `expired`, and once it returns true stops. The proof is of
// what the scope has.
SearchResult search(const costmodel::Scenario& scenario, costmodel::Evaluator& evaluator,
                    const std::function<bool()>& expired = {}, const SearchScope& scope = {});

// The fastest of the simplest even plans that fit, take no more than `most` and are at least as
// simple as `least`. `near`: of a search's result; a family whose bound is more has none.
std::optional<Ranked> simplest_even(const costmodel::Scenario& scenario,
                                    const std::vector<BoundedPlan>& near, costmodel::Seconds most,
                                    const Simplicity& least, costmodel::Evaluator& evaluator);

// Evaluates every plan of the space; the tests compare search() with it.
SearchResult brute_force(const costmodel::Scenario& scenario, costmodel::Evaluator& evaluator);

// The bytes that a plan may use per device: the device's memory less the margin.
costmodel::Bytes memory_limit(const costmodel::Scenario& scenario);

// What the margin is by: "search.memory_margin", or "search.memory_confidence=0.9".
std::string margin_key(const costmodel::SearchLimits& limits);

// "97 %", "over 99 %", "under 1 %".
std::string chance_text(double probability);

// Whether a plan fits, for every command: within what a search may use, `tightly` within all of the
// device's memory, or beyond it. `margin` is search.memory_margin.
enum class MemoryFit { fits, tightly, exceeds };
MemoryFit fit_of(const costmodel::Estimate& estimate, double margin);

}  // namespace planner
