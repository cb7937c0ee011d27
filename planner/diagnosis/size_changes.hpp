// Changes of how many devices, sequences and tokens there are. Each records the first remedy that
// it finds.
#pragma once

#include "costmodel/scenario/scenario.hpp"
#include "planner/diagnosis/attempts.hpp"

namespace planner {

// The fewest devices with which a plan exists: doubled until one does, and then whole nodes, or
// parts of the first, between the last two.
void more_devices(const costmodel::Scenario& scenario, Attempts& attempts);

// The largest number of devices, about halved in each step, that the rules allow for this batch; in
// multiples of the product of the fixed sizes.
void fewer_devices(const costmodel::Scenario& scenario, Attempts& attempts);

// The batch nearest to the requested one that some number of devices divides.
void nearest_batch(const costmodel::Scenario& scenario, Attempts& attempts);

// Half of it, or as many halves as it takes, down to a 64th.
void half_sequence(const costmodel::Scenario& scenario, Attempts& attempts);

}  // namespace planner
