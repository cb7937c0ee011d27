// The event simulator: start and end of each action of a schedule, given the times of each stage. A
// schedule is compiled once into a program (dependencies as indices, in topological order), which
// is then replayed in one pass over an array. That is cheap enough for the inner loop of the
// search.
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
    std::int32_t dependency;  // index of the item it depends on; -1: none
    std::int32_t rank;
    std::int32_t duration;  // 3·stage + (0 forward, 1 backward, 2 weight gradient)
    std::int16_t remote;    // the dependency is on another rank
    std::int16_t sends;     // the result is sent to another rank
  };
  // What is known of a rank's times after a replay: indices of items, -1: none.
  struct Rank {
    std::int32_t first = -1, last_backward = -1;
    std::int32_t before = -1;  // what runs before that backward
    std::int32_t last = -1;
  };
  int ranks = 1;
  int stages = 1;
  std::vector<Item> items;
  std::vector<Rank> by_rank;
  std::vector<std::int32_t> micro_batch;  // by item, for the timeline
  // By item, the items of the cell that it begins, 0 inside of one; empty when all run alone.
  std::vector<std::int32_t> cells;
};

SimulationProgram compile(const Schedule& schedule);

struct SimulationResult {
  Seconds makespan;             // latest end on any rank
  std::vector<Seconds> begin;   // by rank: start of its first action
  std::vector<Seconds> finish;  // by rank: end of its last action, blocking send included
  std::vector<Seconds> last_backward_start;  // by rank: start of its last backward
};

// The time of a cell: that of its only action, `together` of its forward, or the sum.
Seconds cell_time(std::span<const Action> cell, const PipelineTimes& times);

// `scratch` is a buffer that keeps its capacity between calls. The result is bit-for-bit
// deterministic.
SimulationResult simulate(const SimulationProgram& program, const PipelineTimes& times,
                          std::vector<double>& scratch);

// The makespan only.
Seconds simulate_makespan(const SimulationProgram& program, const PipelineTimes& times,
                          std::vector<double>& scratch);

// The same run as events, including transfers.
Timeline simulate_timeline(const SimulationProgram& program, const PipelineTimes& times);

}  // namespace costmodel
