// The event simulator: what time each action of a schedule starts and ends, given what each stage's
// forward and backward take. A program is compiled once for a schedule (dependencies as indices, in
// an order that respects them) and then replayed in one pass over an array, so that it is cheap
// enough to stand inside the search.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "costmodel/base/units.hpp"
#include "costmodel/schedule/schedule.hpp"
#include "costmodel/schedule/stage_times.hpp"
#include "costmodel/schedule/timeline.hpp"

namespace costmodel {

struct SimulationProgram {
  struct Item {
    std::int32_t dependency;  // index of the item whose result is needed; -1 none
    std::int32_t rank;
    std::int32_t duration;  // 3·stage + (0 forward, 1 backward, 2 weight gradient)
    std::int16_t remote;    // 1: the dependency ran on another rank
    std::int16_t sends;     // 1: the result goes to another rank
  };
  int ranks = 1;
  int stages = 1;
  std::vector<Item> items;
  std::vector<std::int32_t> micro_batch;  // of each item, for the timeline
};

SimulationProgram compile(const Schedule& schedule);

struct SimulationResult {
  Seconds makespan;             // last end on any rank
  std::vector<Seconds> begin;   // by rank: start of its first action
  std::vector<Seconds> finish;  // by rank: end of its last action, blocking send included
  std::vector<Seconds> last_backward_start;  // by rank: start of its last backward
};

// `scratch` keeps its capacity between calls. Deterministic to the bit.
SimulationResult simulate(const SimulationProgram& program, const PipelineTimes& times,
                          std::vector<double>& scratch);

// The makespan alone.
Seconds simulate_makespan(const SimulationProgram& program, const PipelineTimes& times,
                          std::vector<double>& scratch);

// The same run as events, transfers included.
Timeline simulate_timeline(const SimulationProgram& program, const PipelineTimes& times);

}  // namespace costmodel
