// Constants of engines, fitted to published measurements of serving, and how well they predict a
// source that they were not fitted to.
#pragma once

#include <vector>

#include "costmodel/serving/engine.hpp"
#include "planner/accuracy/serving_evidence.hpp"

namespace planner {

// Factors of all engines, of each family and of each device, held by the priors' spreads. Every
// source counts alike; runs of low confidence do not count. Errors are of the four metrics, the end
// to end time only where there is no time a token. The runs' scenarios are left with the fitted
// constants, and predicted.
costmodel::ServingFit fit_serving(std::vector<ServingRun>& runs, int threads);

// Each source predicted by constants that one step from the priors fits to all others; nothing of
// the source itself enters. The runs are left with these predictions.
void leave_one_source_out(std::vector<ServingRun>& runs, int threads);

// A fit as configs/serving_fit.yaml has it.
costmodel::Value fit_value(const costmodel::ServingFit& fit);

}  // namespace planner
