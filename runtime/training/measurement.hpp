// What one rank measures in a run, and the summary over all ranks.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "costmodel/cost/collective.hpp"
#include "costmodel/schedule/timeline.hpp"
#include "runtime/backend/arena.hpp"
#include "runtime/backend/transport.hpp"
#include "runtime/ranks/collectives.hpp"
#include "runtime/training/gradient_reducer.hpp"

namespace runtime {

// An action of the last iteration; times in seconds from the iteration's start. Those of a cell
// have the same.
struct ActionTime {
  costmodel::Action action;
  costmodel::Seconds start, end;
};

struct RankMeasurement {
  int pipeline_rank = 0;
  std::vector<costmodel::Seconds> iterations;  // each from the common start to this rank's end
  std::vector<double> loss_sums;               // by iteration; on the last stage
  // Mean time of one micro-batch over all iterations but the first, by virtual stage (0 on other
  // ranks).
  std::vector<costmodel::Seconds> forward, backward;
  costmodel::Seconds pipeline_end, reduced, end;  // of the last iteration
  std::vector<TimeSpan> reductions;               // of gradients, of the last iteration
  std::vector<ActionTime> actions;                // of the last iteration
  // The slowdown of its operators against the profile's pace (paced_device.hpp), mean over all
  // iterations but the first; 0: not measured.
  double pace = 0;
  double loss_scale = 0;     // after its last iteration; 0: none
  std::int64_t skipped = 0;  // steps skipped because gradients overflowed
  TrafficCount traffic;      // of one iteration
  std::array<std::int64_t, memory_kind_names.size()> peaks{};  // bytes, by memory kind
  std::int64_t peak = 0;
};

// All ranks' measurements on rank 0, by rank; empty elsewhere.
std::vector<RankMeasurement> gather_measurements(Transport& transport, const RankMeasurement& own);

struct RunSummary {
  costmodel::Seconds iteration;  // median over all but the first, unless it is the only one
  std::vector<double> loss;      // mean over the tokens of the batch, in nats, by iteration
  std::vector<costmodel::Seconds> stage_forward, stage_backward;  // by virtual stage
  double bubble_fraction = 0;  // as in costmodel/schedule/timeline.hpp, of the last iteration
  double pace = 0;             // mean over ranks; 0: not measured
  double loss_scale = 0;       // the same on all ranks
  std::int64_t skipped = 0;
  // By pipeline rank: the maximum over its ranks, bytes.
  std::vector<std::array<std::int64_t, memory_kind_names.size()>> memory;
  std::vector<std::int64_t> peak;
  // By pipeline rank: bytes that a device sends per iteration, mean over its ranks.
  std::vector<costmodel::Traffic> traffic;
  costmodel::Timeline timeline;  // of the last iteration, of the first rank of each stage
};

RunSummary summarise(const std::vector<RankMeasurement>& ranks, const costmodel::ParallelPlan& plan,
                     std::int64_t tokens_per_batch);

// The timeline of the actions in each pipeline rank's measurement.
costmodel::Timeline timeline_of(const std::vector<RankMeasurement>& ranks, int pipeline_ranks);

// Fills in the stage times and the bubble from summary.timeline alone, for `micro_batches`. Ranks
// that end `apart` do not wait for one another between iterations.
void summarise_stages(const costmodel::ParallelPlan& plan, std::int64_t micro_batches, bool apart,
                      RunSummary& summary);

// A sentence when losses are not finite from some iteration on, else "".
std::string loss_warning(const std::vector<double>& losses);

// FNV-1a over the losses' bits: equal exactly when the loss trajectories are equal.
std::uint64_t checksum(const std::vector<double>& losses);

}  // namespace runtime
