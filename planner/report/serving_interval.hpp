// The interval of a prediction of serving, and what it rests on.
#pragma once

#include <array>
#include <string>

#include "costmodel/serving/engine.hpp"
#include "costmodel/serving/serving_estimate.hpp"

namespace planner {

// That no measurement of the device or of the engine is among those of the intervals; "" where some
// are.
std::string evidence_note(const costmodel::ServingScenario& scenario,
                          const costmodel::ServingFit& fit);

// Output tokens/s between which a plan lies, `rate`: measured / predicted. Of an open load no more
// than arrives, and less only where the plan may not answer it.
std::array<double, 2> output_interval(const costmodel::ServingScenario& scenario,
                                      const costmodel::ServingEstimate& estimate,
                                      const std::array<double, 2>& rate);

}  // namespace planner
