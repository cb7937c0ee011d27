// Many plans of one scenario at once, for who tries plans by arrays: a column a key in, a column a
// figure out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "costmodel/estimate/estimate.hpp"
#include "costmodel/scenario/scenario.hpp"

namespace planner {

// A key of the plan and its value in each plan; of a switch 0 and 1.
struct PlanColumn {
  std::string key;
  std::span<const std::int64_t> values;
};

// A figure of a plan: its name in JSON, and where it is in an estimate.
struct PlanFigure {
  const char* name;
  double (*of)(const costmodel::Estimate& estimate);
};
std::span<const PlanFigure> plan_figures();

struct ManyPlans {
  // By figure, in the order of plan_figures(), then by plan. Not a number where the plan breaks a
  // rule.
  std::vector<std::vector<double>> figures;
  // Why, by plan; "" of a valid plan.
  std::vector<std::string> errors;
  std::size_t distinct = 0;  // how many plans were priced: equal ones are one
};

// The scenario's plan with these values. The answer does not depend on the number of threads. Once
// `stopped` returns true, the other plans are errors. Throws ConfigError for columns of
// different lengths, and for a key that has no numbers.
ManyPlans evaluate_many(const costmodel::Scenario& scenario, const std::vector<PlanColumn>& columns,
                        int threads, const std::function<bool()>& stopped = {});

}  // namespace planner
