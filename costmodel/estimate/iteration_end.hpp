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

// Whether ranks end an iteration without waiting for one another: zero-bubble schedules whose
// optimizer steps are validated afterwards (Qi et al. 2024, arXiv:2401.10241, section 4).
bool ends_apart(ScheduleKind kind, const StackSpec& stack);

// The time of the pipeline alone: from its first start to its last end, or, where ranks end apart,
// the longest span of one rank.
Seconds pipeline_of(const SimulationResult& run, bool apart);

// The time when a rank's gradients are reduced, if its pipeline ended at `end`.
Seconds reduced(Seconds end, const PlanCost& cost, std::size_t rank);

Ending ending(const PlanCost& cost, const SimulationResult& run, const EndTerms& terms);

}  // namespace costmodel
