// How an iteration ends once its pipeline has run: gradients, optimizer, parameters, host and
// stragglers.
#pragma once

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/schedule/simulator.hpp"

namespace costmodel {

struct Ending {
  Seconds iteration;
  Seconds meeting;           // the last rank's gradients are reduced
  Seconds waiting;           // for the slowest node, all the time
  std::size_t critical = 0;  // the rank that decides
  Seconds optimizer, gather;
};

// When a rank's gradients are reduced whose pipeline ended at `end`.
Seconds reduced(Seconds end, const PlanCost& cost, std::size_t rank);

Ending ending(const PlanCost& cost, const SimulationResult& run, const EndTerms& terms);

}  // namespace costmodel
