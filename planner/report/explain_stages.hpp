// What explains each stage of a plan whose stages differ.
#pragma once

#include <string>
#include <vector>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/scenario/scenario.hpp"

namespace planner {

// One worked figure: the group it stands in ("stage 0"), its symbol, value and where it comes from.
struct Explained {
  std::string group, symbol, value, from;
};

std::vector<Explained> explained_stages(const costmodel::Estimate& estimate,
                                        const costmodel::Scenario& scenario,
                                        costmodel::Evaluator& evaluator);

// Stages whose layers are cut alike on devices alike, told by the first of them: its plan, and the
// scenario on its devices.
struct StageKind {
  int stage = 0;
  costmodel::ParallelPlan plan;
  costmodel::Scenario scenario;
};
std::vector<StageKind> stage_kinds(const costmodel::Estimate& estimate,
                                   const costmodel::Scenario& scenario);

}  // namespace planner
