// Explains each stage of a plan with heterogeneous stages.
#pragma once

#include <string>
#include <vector>

#include "costmodel/estimate/estimate.hpp"
#include "costmodel/scenario/scenario.hpp"

namespace planner {

// One worked value: its group ("stage 0"), symbol, value and origin.
struct Explained {
  std::string group, symbol, value, from;
};

// Worked values, and the group of those that are added next.
struct Explanation {
  std::string group = {};
  std::vector<Explained> rows = {};

  void add(const std::string& symbol, const std::string& value, const std::string& from) {
    rows.push_back({group, symbol, value, from});
  }
  void add(const std::vector<Explained>& more) {
    rows.insert(rows.end(), more.begin(), more.end());
  }
};

std::vector<Explained> explained_stages(const costmodel::Estimate& estimate,
                                        const costmodel::Scenario& scenario,
                                        costmodel::Evaluator& evaluator);

// Stages with identical sharding on identical devices, represented by the first of them: its plan,
// and the scenario on its devices.
struct StageKind {
  int stage = 0;
  costmodel::ParallelPlan plan;
  costmodel::Scenario scenario;
};
std::vector<StageKind> stage_kinds(const costmodel::Estimate& estimate,
                                   const costmodel::Scenario& scenario);

}  // namespace planner
