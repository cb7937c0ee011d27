// What the towers of a model cost in a training: lines of a report, and the same for JSON.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/scenario/scenario.hpp"

namespace planner {

struct TowerFigures {
  std::string name;  // "vision"
  std::int64_t layers = 0;
  double parameters = 0, trained = 0;
  std::int64_t inputs = 0;  // of a sequence
  costmodel::TowerTokens tokens;
  bool cut = false;  // by tensor parallelism
  // Of a micro-batch on the first stage, which `backward` takes with recomputation; and what its
  // device keeps of it from forward to backward. Zero for plans whose stages differ.
  costmodel::Seconds forward, backward;
  costmodel::Bytes kept;
  costmodel::Flops model;  // of an iteration, all devices
};
std::vector<TowerFigures> tower_figures(const costmodel::Estimate& estimate,
                                        const costmodel::Scenario& scenario,
                                        costmodel::Evaluator& evaluator);

// A name and a line of each.
std::vector<std::pair<std::string, std::string>> tower_facts(const costmodel::Estimate& estimate,
                                                             const costmodel::Scenario& scenario,
                                                             costmodel::Evaluator& evaluator);

}  // namespace planner
