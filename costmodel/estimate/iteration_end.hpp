// The end of an iteration after its pipeline: gradient reduction, optimizer, parameter gather, host
// time and stragglers.
#pragma once

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/schedule/simulator.hpp"

namespace costmodel {

struct Ending {
  Seconds iteration;
  Seconds meeting;           // time when the last rank's gradients are reduced
  Seconds waiting;           // total wait for the slowest node
  std::size_t critical = 0;  // the rank that determines the time
  Seconds optimizer, gather;
};

// The time when a rank's gradients are reduced, if its pipeline ended at `end`.
Seconds reduced(Seconds end, const PlanCost& cost, std::size_t rank);

Ending ending(const PlanCost& cost, const SimulationResult& run, const EndTerms& terms);

}  // namespace costmodel
