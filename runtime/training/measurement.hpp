// What one rank of a run saw, and what all of them together say.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/schedule/timeline.hpp"
#include "runtime/backend/arena.hpp"
#include "runtime/backend/transport.hpp"
#include "runtime/ranks/collectives.hpp"
#include "runtime/training/gradient_reducer.hpp"

namespace runtime {

// One action of the last iteration.
struct ActionTime {
  costmodel::Action action;
  costmodel::Seconds start, end;
};

struct RankMeasurement {
  int pipeline_rank = 0;
  std::vector<costmodel::Seconds> iterations;  // each from the common start to this rank's end
  std::vector<double> loss_sums;               // by iteration; of the last stage
  // Over all iterations but the first: mean of one micro-batch, by virtual stage (0 on others).
  std::vector<costmodel::Seconds> forward, backward;
  costmodel::Seconds pipeline_end, reduced, end;  // of the last iteration
  std::vector<TimeSpan> reductions;               // of gradients, of the last iteration
  std::vector<ActionTime> actions;                // of the last iteration
  // How many times as long its operators took as at the profile's pace (paced_device.hpp): the mean
  // over all iterations but the first; 0: not measured.
  double pace = 0;
  double loss_scale = 0;     // after its last iteration; 0: none
  std::int64_t skipped = 0;  // steps, because gradients overflowed
  TrafficCount traffic;      // of one iteration
  std::array<std::int64_t, memory_kind_names.size()> peaks{};  // bytes, by memory kind
  std::int64_t peak = 0;
};

// Everybody's measurements on rank 0 (by rank); empty elsewhere.
std::vector<RankMeasurement> gather_measurements(Transport& transport, const RankMeasurement& own);

struct RunSummary {
  costmodel::Seconds iteration;  // median over iterations but the first (of one: that one)
  std::vector<double> loss;      // mean over the tokens of the batch, in nats, by iteration
  std::vector<costmodel::Seconds> stage_forward, stage_backward;  // by virtual stage
  double bubble_fraction = 0;  // of the pipeline rank that ends last: idle / busy
  double pace = 0;             // the mean of the ranks'; 0: not measured
  double loss_scale = 0;       // as every rank has it
  std::int64_t skipped = 0;
  // By pipeline rank: the most of its ranks.
  std::vector<std::array<std::int64_t, memory_kind_names.size()>> memory;
  std::vector<std::int64_t> peak;
  // By pipeline rank: bytes a device sends in an iteration, the mean of its ranks.
  std::vector<costmodel::Traffic> traffic;
  costmodel::Timeline timeline;  // of the last iteration, of the first rank of each stage
};

RunSummary summarise(const std::vector<RankMeasurement>& ranks, const costmodel::ParallelPlan& plan,
                     std::int64_t tokens_per_batch);

// The actions that each pipeline rank's measurement holds.
costmodel::Timeline timeline_of(const std::vector<RankMeasurement>& ranks, int pipeline_ranks);

// Stage times and bubble from summary.timeline alone, of so many micro-batches.
void summarise_stages(const costmodel::ParallelPlan& plan, std::int64_t micro_batches,
                      RunSummary& summary);

// "" or that losses are not numbers from some iteration on.
std::string loss_warning(const std::vector<double>& losses);

// FNV-1a over the losses' bits: equal exactly when the trajectories are.
std::uint64_t checksum(const std::vector<double>& losses);

}  // namespace runtime
