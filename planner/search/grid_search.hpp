// The best plans of a scenario, proved: families are bounded from below, opened in the order of
// their bounds, and the search ends when the next bound is no better than the worst plan it would
// replace.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/scenario/scenario.hpp"

namespace planner {

struct SearchStatistics {
  std::uint64_t configurations = 0;  // valid plans in the space
  std::uint64_t evaluated = 0;       // memory and bound computed
  std::uint64_t feasible = 0;        // of these, that fit in memory
  std::uint64_t pruned = 0;  // never opened, or not simulated: their bound proves them no better
  std::uint64_t simulated = 0;
};

struct SearchResult {
  std::vector<costmodel::Estimate> plans;  // best first; empty when nothing fits
  SearchStatistics statistics;
  costmodel::Seconds lower_bound;  // no plan of the space is faster
  // The plan of least peak memory among those evaluated, for the diagnosis when nothing fits.
  std::optional<costmodel::ParallelPlan> leanest;
  costmodel::Bytes leanest_peak;
};

// Deterministic: ties go to the plan with the smaller peak memory, then to the order of
// enumeration.
SearchResult search(const costmodel::Scenario& scenario, costmodel::Evaluator& evaluator);

// Tries every plan of the space; the tests' witness.
SearchResult brute_force(const costmodel::Scenario& scenario, costmodel::Evaluator& evaluator);

// The scenario's own plan: missing keys at their defaults, keys written `auto` chosen by the
// search. Nothing when no choice fits in memory. Throws ConfigError for a plan that breaks a rule.
std::optional<costmodel::ParallelPlan> settled_plan(const costmodel::Scenario& scenario);

// The bytes a plan may use: the device's memory less the margin.
costmodel::Bytes memory_limit(const costmodel::Scenario& scenario);

}  // namespace planner
