// What is predicted of a plan: time and its parts, memory, traffic and throughput. Data alone;
// evaluator.hpp makes it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "costmodel/base/units.hpp"
#include "costmodel/cost/collective.hpp"
#include "costmodel/estimate/plan_cost.hpp"
#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/plan/stage_plan.hpp"

namespace costmodel {

class Evaluator;  // makes estimates

struct Breakdown {
  Seconds compute, recompute, tp_comm, cp_comm, ep_comm, pp_comm, dp_comm;
  Seconds bubble;     // idle while the pipeline fills and drains
  Seconds imbalance;  // idle because a slower pipeline rank takes longer for every micro-batch, or
                      // another replica, whose packed samples are longer
  Seconds optimizer, other;
  Seconds total() const;
  Breakdown& operator*=(double factor);
};

// All of them, in this order: what goes over the parts of an iteration goes over these.
inline constexpr std::array breakdown_parts{
    &Breakdown::compute,   &Breakdown::recompute, &Breakdown::tp_comm, &Breakdown::cp_comm,
    &Breakdown::ep_comm,   &Breakdown::pp_comm,   &Breakdown::dp_comm, &Breakdown::bubble,
    &Breakdown::imbalance, &Breakdown::optimizer, &Breakdown::other};
static_assert(sizeof(Breakdown) == breakdown_parts.size() * sizeof(Seconds));

inline Seconds Breakdown::total() const {
  Seconds sum;
  for (const auto part : breakdown_parts) sum += this->*part;
  return sum;
}

inline Breakdown& Breakdown::operator*=(double factor) {
  for (const auto part : breakdown_parts) this->*part = this->*part * factor;
  return *this;
}

struct Interval {
  Seconds low, high;
};

struct Estimate {
  ParallelPlan plan;
  std::int64_t micro_batches = 0;  // per replica; of several pipelines, the largest
  Seconds iteration;
  Interval interval;
  Breakdown breakdown;      // of the critical rank; sums to iteration
  Seconds longest_samples;  // of its imbalance: waiting for the replica with the longest ones
  int critical_rank = 0;
  Seconds pipeline;  // from first start to last end; of one rank where ranks do not synchronise
  // (pipeline - m·(t_f + t_b)) / (m·(t_f + t_b)), with t_f + t_b of the slowest pipeline rank: what
  // more micro-batches would reduce. (p - 1)/m for equal stages without communication.
  double bubble_fraction = 0;
  std::vector<Seconds> stage_forward,
      stage_backward;  // by virtual stage, one micro-batch; backward includes recomputation and
                       // weight gradient
  std::vector<StageMemory> memory;    // by pipeline rank
  Bytes peak, capacity;               // with different devices, those of the fullest stage
  std::size_t fullest = 0;            // the fullest stage
  std::vector<Bytes> stage_capacity;  // by pipeline rank; heterogeneous stages only
  std::vector<StageMesh> meshes;      // heterogeneous stages only: each stage's plan and place,
                                      // pipeline after pipeline
  Bytes host, host_capacity;          // of a node: kept in host memory (plan.offload), and that
                                      // memory; 0: none, unknown
  Bytes drives, drive_capacity;       // ... and on its NVMe drives
  bool in_host() const { return host_capacity.value <= 0 || host <= host_capacity; }
  bool on_drives() const { return drive_capacity.value <= 0 || drives <= drive_capacity; }
  bool fits() const { return peak <= capacity && in_host() && on_drives(); }
  Traffic traffic;                    // of the device that sends most
  std::vector<Traffic> rank_traffic;  // by pipeline rank, per device
  double parameters = 0, active_parameters = 0;
  double trained_parameters = 0;  // of adapters, if only these are
  double mtp_parameters = 0;      // trained with them: multi-token prediction's
  // Per iteration, all devices: attention in full; and what the kernels execute, recomputation
  // included: at most what the devices can.
  Flops model_flops, hardware_flops;
  Flops causal_model_flops;  // the same with attention halved for causality
  double tokens_per_s = 0;
  double mfu = 0, hfu = 0;  // the same as fractions of the devices' peak
  FlopsPerSecond model_rate_per_device;
  double causal_mfu = 0;  // the same from causal_model_flops
  FlopsPerSecond causal_rate_per_device;
  std::vector<std::string> notes;
  std::vector<std::string> unknown;  // what of it no published run has: "by peft"
};

}  // namespace costmodel
