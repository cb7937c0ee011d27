// The facade of the cost model: plan in; time, memory and traffic out.
//
// An Evaluator belongs to one (model, cluster, training). It caches the prices of layers between
// plans, so that a search pays only a few additions per stage for a plan. Not thread-safe: use one
// per thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "costmodel/base/units.hpp"
#include "costmodel/cost/collective.hpp"
#include "costmodel/cost/layer_cost.hpp"
#include "costmodel/estimate/iteration_end.hpp"
#include "costmodel/estimate/layer_mix.hpp"
#include "costmodel/estimate/model_flops.hpp"
#include "costmodel/estimate/plan_cost.hpp"
#include "costmodel/estimate/price_cache.hpp"
#include "costmodel/estimate/pricing.hpp"
#include "costmodel/operators/transformer.hpp"
#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/plan/stage_plan.hpp"
#include "costmodel/schedule/simulator.hpp"

namespace costmodel {

struct Breakdown {
  Seconds compute, recompute, tp_comm, cp_comm, ep_comm, pp_comm, dp_comm;
  Seconds bubble;     // idle while the pipeline fills and drains
  Seconds imbalance;  // idle because a slower pipeline rank takes longer for every micro-batch, or
                      // another replica, whose packed samples are longer
  Seconds optimizer, other;
  Seconds total() const {
    return compute + recompute + tp_comm + cp_comm + ep_comm + pp_comm + dp_comm + bubble +
           imbalance + optimizer + other;
  }
  Breakdown& operator*=(double factor) {
    for (Seconds* part : {&compute, &recompute, &tp_comm, &cp_comm, &ep_comm, &pp_comm, &dp_comm,
                          &bubble, &imbalance, &optimizer, &other})
      *part = *part * factor;
    return *this;
  }
};

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
  Bytes reported_peak;                // the peak as the framework's log would report it
  bool fits() const { return peak <= capacity; }
  Traffic traffic;                    // of the device that sends most
  std::vector<Traffic> rank_traffic;  // by pipeline rank, per device
  double parameters = 0, active_parameters = 0;
  double trained_parameters = 0;      // of adapters, if only these are
  Flops model_flops, hardware_flops;  // per iteration, all devices; attention in full
  Flops causal_model_flops;           // the same with attention halved for causality
  double tokens_per_s = 0;
  double mfu = 0, hfu = 0;  // fractions of the devices' peak, attention in full
  FlopsPerSecond model_rate_per_device;
  double causal_mfu = 0;  // the same from causal_model_flops
  FlopsPerSecond causal_rate_per_device;
  std::vector<std::string> notes;
};

// A pipeline on its own devices, as if the plan had no other.
struct PipelineEstimate {
  Estimate estimate;  // without what all share: plan, iteration, parameters, throughput and notes
  Ending end;
  Offload offload;
  std::vector<Bytes> gradients;  // by pipeline rank: of the shard that a device keeps
};

struct PipelineTimeline {
  Timeline timeline;  // up to the reduction of its gradients
  Ending end;
  bool apart = false;                // whether its ranks end independently
  std::vector<Seconds> reduced;      // by pipeline rank: the time when its gradients are
  std::vector<AfterPipeline> after;  // by pipeline rank
};

// Schedules with more actions are simulated in part and extrapolated by their period.
inline constexpr std::int64_t most_simulated_actions = std::int64_t{1} << 18;
// A timeline is never extrapolated: one with more actions is refused.
inline constexpr std::int64_t most_drawn_actions = std::int64_t{1} << 22;

class Evaluator {
 public:
  Evaluator(ModelSpec model, ClusterSpec cluster, TrainingSpec training);

  // Sets the global batch for later calls, in sequences per iteration. Prices of layers are kept.
  void train_on(std::int64_t global_batch);

  // The stage-cost table of a valid plan of one pipeline, on the entire cluster. The reference is
  // valid until the next call.
  const PlanCost& cost(const ParallelPlan& plan);
  // The same with the given layers on the virtual stages instead of the plan's, one mix per stage.
  // The mixes give the number of recomputed layers; `plan.recompute` gives only the granularity.
  // The stages need not add up to the model, so one call can price many candidate stages.
  const PlanCost& cost(const ParallelPlan& plan, const std::vector<LayerMix>& stages);
  // The first and last stages of a pipeline of plan.pp stages, as many as there are mixes. The
  // stages in between are not priced: micro-batches in flight are those of the short pipeline, the
  // bubble is that of the full one.
  const PlanCost& cost_of_ends(const ParallelPlan& plan, const std::vector<LayerMix>& stages);
  // Iteration time: cost() and a simulation. Same plans as cost(). Throws InternalError for an
  // invalid plan.
  Seconds iteration_time(const ParallelPlan& plan);
  // The actions that this simulates, of a plan that is not read from a file; those beyond a few
  // periods follow from them.
  std::int64_t simulated_actions(const ParallelPlan& plan) const;
  // The iteration time, with its parts.
  Ending end_of(const ParallelPlan& plan);
  // Estimate and timeline accept any valid plan.
  Estimate estimate(const ParallelPlan& plan);
  // Throws ConfigError when the schedule has more than most_drawn_actions.
  Timeline timeline(const ParallelPlan& plan);
  // What those two are made of. Same plans as cost().
  PipelineEstimate estimate_alone(const ParallelPlan& pipeline);
  PipelineTimeline timeline_alone(const ParallelPlan& pipeline);

  const Workload& workload() const { return on_; }
  const ModelSpec& model() const { return on_.model; }
  const ClusterSpec& cluster() const { return on_.cluster; }
  const TrainingSpec& training() const { return on_.training; }
  Flops model_flops() const { return model_flops_.full; }

  // The plan that the framework really runs for a requested one. All prices are for this plan.
  ParallelPlan as_run(const ParallelPlan& requested) const;
  // The price of a layer under the plan, and the op list that it is computed from.
  const LayerCost& layer(LayerKind kind, const ParallelPlan& plan, Recomputed what);
  OpList op_list(LayerKind kind, const ParallelPlan& plan) const;
  // The pricing of the list's steps; valid as long as the evaluator.
  Pricing pricing(const ParallelPlan& plan) const;

 private:
  const PlanCost& cost_by_stage(const ParallelPlan& plan);
  const SimulationProgram& program_of(const ParallelPlan& plan, std::int64_t micro_batches);
  SimulationResult simulated(const ParallelPlan& plan, const PipelineTimes& times);

  Workload on_;
  ModelFlops model_flops_;  // of an iteration
  PriceCache cache_;
  PlanCost cost_;                    // of the last plan
  SimulationProgram split_program_;  // of the last plan whose schedule depends on its times, or is
                                     // listed
  std::vector<double> scratch_;      // of simulations
  std::vector<Evaluator> parts_;     // one per kind of device, for heterogeneous stages
};

}  // namespace costmodel
