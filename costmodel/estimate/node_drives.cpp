#include "costmodel/estimate/node_drives.hpp"

#include <algorithm>

#include "costmodel/estimate/iteration_end.hpp"

namespace costmodel {

namespace {

constexpr double fp32 = 4;

// Defaults of deepspeed/runtime/zero/config.py and offload_config.py, in elements: the optimizer
// steps through groups of so many; of parameters so many stay in host memory.
constexpr double sub_group_size = 1e9, max_in_cpu = 1e9;
// offload_optimizer.buffer_count: parameter, gradient and two moments of a group
// (PartitionedOptimizerSwapper).
constexpr double state_buffers = 4;
// offload_param.buffer_count and buffer_size (AsyncPartitionedParameterSwapper).
constexpr double parameter_buffers = 5, parameter_buffer = 1e8;

// The states and fp32 gradients of each group are read before its update, and the states written
// after it; gradients are written as they are reduced, with the last micro-batch.
void add_states(const PlanInputs& in, double own, RankDrives& all) {
  const Bytes states(own * optimizer_bytes_per_parameter(in.on.training)), gradients(own * fp32);
  all.kept += states + gradients;
  all.pinned += Bytes(std::min(own, sub_group_size) * state_buffers * fp32);
  all.read += states + gradients;
  all.written += states + gradients;
}

// What of the parameters has no place in host memory is read for each pass, through a group's
// buffers, and written after the step, through one for the largest group.
void add_parameters(const PlanInputs& in, const RankWeights& rank, double own, RankDrives& all) {
  const double weight = weight_bytes_per_parameter(in.on.training);
  const Bytes frozen(sharded(rank.frozen.value, rank.frozen_experts.value, in.plan));
  const Bytes parameters = Bytes(own * weight) + frozen;
  const Bytes away = max(Bytes(0), parameters - Bytes(max_in_cpu * weight));
  all.kept += away;
  all.pinned += parameters - away + Bytes(parameter_buffers * parameter_buffer * weight);
  if (away <= Bytes(0)) return;
  all.pinned += Bytes(std::min(own, sub_group_size) * weight);
  all.fetched += away;
  all.written += away * (Bytes(own * weight) / parameters);
}

double ranks_together(const PlanInputs& in) {
  return static_cast<double>(ranks_on_a_node(in.on.cluster));
}

}  // namespace

RankDrives rank_drives(const PlanInputs& in, const RankWeights& rank) {
  const HostOffload& offload = in.plan.offload;
  const double own = own_parameters(in.plan, rank);
  RankDrives all;
  if (offload.optimizer_on_drives()) add_states(in, own, all);
  if (offload.parameters_on_drives()) add_parameters(in, rank, own, all);
  return all;
}

Seconds fetch_time(const PlanInputs& in, const RankDrives& own) {
  return own.fetched * ranks_together(in) / drives_of(in.on.cluster).read;
}

// One group after the other: read, updated, written (offload_optimizer.pipeline_read and
// pipeline_write, which overlap them, are off).
Seconds step_time(const PlanInputs& in, const RankDrives& own) {
  const DriveSpec drives = drives_of(in.on.cluster);
  return own.read * ranks_together(in) / drives.read +
         own.written * ranks_together(in) / drives.write;
}

}  // namespace costmodel
