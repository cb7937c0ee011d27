// What an estimate of serving assumes, and what a reader might not expect of it.
#pragma once

#include <string>
#include <vector>

#include "costmodel/serving/serving_estimate.hpp"

namespace planner {

// Sentences for people: formats without products of their own, even experts, devices and replicas
// that are idle, latencies that would still grow, requests that are not simulated, preemptions.
std::vector<std::string> serving_notes(const costmodel::ServingScenario& scenario,
                                       const costmodel::ServingEstimate& estimate);

}  // namespace planner
