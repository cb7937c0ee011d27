// The facade of the cost model: plan in; time, memory and traffic out.
//
// An Evaluator belongs to one (model, cluster, training). It caches the prices of layers between
// plans, so that a search pays only a few additions per stage for a plan. Not thread-safe: use one
// per thread.
#pragma once

#include <cstdint>
#include <vector>

#include "costmodel/base/units.hpp"
#include "costmodel/cost/collective.hpp"
#include "costmodel/cost/layer_cost.hpp"
#include "costmodel/estimate/estimate.hpp"
#include "costmodel/estimate/iteration_end.hpp"
#include "costmodel/estimate/layer_mix.hpp"
#include "costmodel/estimate/memory_trace.hpp"
#include "costmodel/estimate/model_flops.hpp"
#include "costmodel/estimate/peak_place.hpp"
#include "costmodel/estimate/plan_cost.hpp"
#include "costmodel/estimate/price_cache.hpp"
#include "costmodel/estimate/pricing.hpp"
#include "costmodel/operators/transformer.hpp"
#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/plan/stage_plan.hpp"
#include "costmodel/schedule/simulator.hpp"

namespace costmodel {

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
  // The same, but where that leaves more than `memory`, each rank's memory by the order that a
  // split backward comes to, as estimate() has it; cost() has the limit for which the schedule is
  // generated, which is never less.
  const PlanCost& cost_within(const ParallelPlan& plan, Bytes memory);
  // The same with the given layers on the virtual stages instead of the plan's, one mix per stage.
  // The mixes give the number of recomputed layers; `plan.recompute` gives only the granularity.
  // The stages need not add up to the model, so one call can price many candidate stages.
  const PlanCost& cost(const ParallelPlan& plan, const std::vector<LayerMix>& stages);
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
  // What holds the peak of an estimate of this evaluator. The stage alone where stages have sizes
  // of their own.
  PeakPlace peak_place(const Estimate& estimate);
  // Its memory over three iterations, allocation by allocation; see memory_trace().
  MemoryTrace memory_trace(const ParallelPlan& plan);
  // The estimate's peak as the log of its stack has it.
  Bytes reported_peak(const Estimate& estimate);
  // ... and as PyTorch's allocator would count it (max_memory_allocated, max_memory_reserved).
  CountedPeak counted_peak(const Estimate& estimate);
  // The same by the stack's reserve, without following the allocator.
  CountedPeak counted_by_stack(const Estimate& estimate) const;

  const Workload& workload() const { return on_; }
  const ModelSpec& model() const { return on_.model; }
  const ClusterSpec& cluster() const { return on_.cluster; }
  const TrainingSpec& training() const { return on_.training; }
  Flops model_flops() const { return model_flops_.full; }
  struct Parameters {
    double all, active, trained;
    double mtp;  // trained with them: multi-token prediction's
  };
  const Parameters& parameters() const { return parameters_; }

  // The plan that the framework really runs for a requested one. All prices are for this plan.
  ParallelPlan as_run(const ParallelPlan& requested) const;
  // The price of a layer under the plan, and the op list that it is computed from.
  const LayerCost& layer(LayerKind kind, const ParallelPlan& plan, Recomputed what);
  OpList op_list(LayerKind kind, const ParallelPlan& plan) const;
  // The pricing of the list's steps; valid as long as the evaluator.
  Pricing pricing(const ParallelPlan& plan) const;

 private:
  const PlanCost& cost_by_stage(const ParallelPlan& plan);
  Flops recomputed_at_mean(const PlanCost& fullest, const ParallelPlan& plan,
                           const std::vector<StageMesh>& meshes) const;
  const SimulationProgram& program_of(const ParallelPlan& plan, std::int64_t micro_batches);
  SimulationResult simulated(const ParallelPlan& plan, const PipelineTimes& times);
  SimulationResult simulated(const ParallelPlan& plan, std::int64_t micro_batches,
                             const PipelineTimes& times);

  Workload on_;
  Parameters parameters_;
  ModelFlops model_flops_;  // of an iteration
  PriceCache cache_;
  PlanCost cost_;                    // of the last plan
  SimulationProgram split_program_;  // of the last plan whose schedule depends on its times, or is
                                     // listed
  std::vector<double> scratch_;      // of simulations
  std::vector<Evaluator> parts_;     // one per kind of device, for heterogeneous stages
};

}  // namespace costmodel
