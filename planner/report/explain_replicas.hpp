// Explains the pipelines of a plan: each as a plan of its own, and the terms that several share.
#pragma once

#include <vector>

#include "costmodel/estimate/pipelines_together.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/report/explain_stages.hpp"

namespace planner {

// The scenario of one pipeline alone: its devices, its share of the batch.
costmodel::Scenario scenario_of(const costmodel::Pipeline& pipeline,
                                const costmodel::Scenario& scenario);

// The terms that several pipelines share: each one's share and the time of its reduction, the sum
// over them, the iteration. One pipeline shares nothing.
std::vector<Explained> explained_groups(const costmodel::PlacedPipelines& pipelines);

}  // namespace planner
