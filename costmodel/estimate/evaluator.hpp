// The facade of the cost model: plan in; time, memory and traffic out.
//
// An Evaluator belongs to one (model, cluster, training). It caches the prices of layers between
// plans, so that a search pays only a few additions per stage for a plan. Not thread-safe: use one
// per thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "costmodel/base/units.hpp"
#include "costmodel/cost/collective.hpp"
#include "costmodel/cost/layer_cost.hpp"
#include "costmodel/estimate/layer_mix.hpp"
#include "costmodel/estimate/model_flops.hpp"
#include "costmodel/machine/cluster_spec.hpp"
#include "costmodel/model/model_spec.hpp"
#include "costmodel/operators/transformer.hpp"
#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/plan/stage_plan.hpp"
#include "costmodel/schedule/simulator.hpp"
#include "costmodel/schedule/zero_bubble.hpp"

namespace costmodel {

// Memory of one device of a pipeline rank in the steady state (optimizer states exist, all
// in-flight micro-batches are held).
struct StageMemory {
  Bytes weights;
  Bytes gradients;
  Bytes optimizer;
  Bytes activations;  // kept by in-flight micro-batches, and the working tensors of the layer being
                      // computed
  Bytes buffers;      // transfers, gathered parameters, contexts, allocator reserve
  double in_flight_micro_batches = 0;
  Bytes each;  // total's increase per micro-batch in flight, on a rank with one chunk
  Bytes total() const { return weights + gradients + optimizer + activations + buffers; }
};

// Transfer of one micro-batch between two stages with different sharding: each device sends and
// receives its own part, and pieces are gathered over the receiver's tensor group.
struct StageTransfer {
  Seconds time;
  Bytes sent;      // sent by one device
  Bytes gathered;  // sent by one device in the gather; 0 without one
};
struct StageBoundary {
  StageTransfer forward, backward;
};

// The stage-cost table: everything about a plan that needs no simulation.
struct PlanCost {
  std::int64_t micro_batches = 0;
  PipelineTimes times;  // by virtual stage: forward and backward of one micro-batch
  std::vector<Cost> forward, backward, recompute;  // the same, by cause
  std::vector<Cost> weight_gradient;  // the weight gradients of a split backward, else empty
  HeldShares shares;                  // for a split backward, else empty
  std::vector<Seconds> zero_forward,
      zero_backward;                    // exposed ZeRO gathers and reductions within a micro-batch
  std::vector<double> weights;          // by pipeline rank: parameters on one device
  std::vector<double> expert_weights;   // expert parameters among them
  std::vector<double> partial_weights;  // those with gradients summed over tensor ranks
  std::vector<LayerMix> layers;         // by virtual stage
  std::vector<Seconds> gradient_exposed;  // by rank: gradient reduction not hidden by backward
  std::vector<Seconds> gather_exposed;    // by rank: parameter gather not hidden by forward
  std::vector<Seconds> optimizer;         // by rank
  Seconds embedding_reduce;               // all-reduce of the copies of the token table
  std::vector<std::size_t> table_ranks;   // ranks with a copy; empty if only one has it
  Bytes transfer_bytes;                   // per device, of one pipeline transfer
  Bytes gradient_bytes;                   // gradient message of the largest rank
  std::vector<StageMemory> memory;        // by rank
  std::vector<StageBoundary> boundaries;  // after each stage but the last; heterogeneous only
  std::vector<Bytes> capacity;            // by rank; heterogeneous stages only
  std::size_t fullest = 0;   // the rank with the highest memory use relative to its capacity
  int offloaded_layers = 0;  // layers with activations offloaded to host memory
  Seconds offload_exposed;   // exposed offload transfers per micro-batch
  Bytes peak;
  Seconds pipeline_bound;  // lower bound on any schedule of these stages
  Seconds lower_bound;     // lower bound on the simulated iteration

  bool sums_table(std::size_t rank) const {
    return std::find(table_ranks.begin(), table_ranks.end(), rank) != table_ranks.end();
  }
};

struct Breakdown {
  Seconds compute, recompute, tp_comm, cp_comm, ep_comm, pp_comm, dp_comm;
  Seconds bubble;     // idle while the pipeline fills and drains
  Seconds imbalance;  // idle because a slower pipeline rank takes longer for every micro-batch
  Seconds optimizer, other;
  Seconds total() const {
    return compute + recompute + tp_comm + cp_comm + ep_comm + pp_comm + dp_comm + bubble +
           imbalance + optimizer + other;
  }
};

struct Interval {
  Seconds low, high;
};

struct Estimate {
  ParallelPlan plan;
  std::int64_t micro_batches = 0;  // per replica; with replica groups, the largest
  Seconds iteration;
  Interval interval;
  Breakdown breakdown;  // of the critical rank; sums to iteration
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
  std::vector<StageMesh> meshes;  // heterogeneous stages only: each stage's plan and place; several
                                  // stages per replica group
  Bytes reported_peak;            // the peak as the framework's log would report it
  bool fits() const { return peak <= capacity; }
  Traffic traffic;                    // of the device that sends most
  std::vector<Traffic> rank_traffic;  // by pipeline rank, per device
  double parameters = 0, active_parameters = 0;
  Flops model_flops, hardware_flops;  // per iteration, all devices; attention in full
  Flops causal_model_flops;           // the same with attention halved for causality
  double tokens_per_s = 0;
  double mfu = 0, hfu = 0;  // fractions of the devices' peak, attention in full
  FlopsPerSecond model_rate_per_device;
  double causal_mfu = 0;  // the same from causal_model_flops
  FlopsPerSecond causal_rate_per_device;
  std::vector<std::string> notes;
};

// Schedules with more actions are simulated in part and extrapolated by their period.
inline constexpr std::int64_t most_simulated_actions = std::int64_t{1} << 18;
// Of the schedules that an evaluator keeps for plans to come; some 30 bytes each.
inline constexpr std::int64_t most_kept_actions = 16 * most_simulated_actions;
// A timeline is never extrapolated: one with more actions is refused.
inline constexpr std::int64_t most_drawn_actions = std::int64_t{1} << 22;

// Terms of an iteration outside its pipeline: host time, the factor for the slowest node, and
// whether ranks end independently, without synchronising at the gradient norm.
struct EndTerms {
  Seconds host;
  double straggler = 1;
  bool apart = false;
};

struct Ending;  // costmodel/estimate/iteration_end.hpp

class Evaluator {
 public:
  Evaluator(ModelSpec model, ClusterSpec cluster, TrainingSpec training);

  // Sets the global batch for later calls, in sequences per iteration. Prices of layers are kept.
  void train_on(std::int64_t global_batch);

  // The stage-cost table of a valid plan without replica groups (each of those has a table of its
  // own). The reference is valid until the next call.
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
  // The same, with its parts.
  Ending end_of(const ParallelPlan& plan);
  // Estimate and timeline accept any valid plan.
  Estimate estimate(const ParallelPlan& plan);
  // Throws ConfigError when the schedule has more than most_drawn_actions.
  Timeline timeline(const ParallelPlan& plan);

  const ModelSpec& model() const { return model_; }
  const ClusterSpec& cluster() const { return cluster_; }
  const TrainingSpec& training() const { return training_; }
  Flops model_flops() const { return model_flops_.full; }

  // The plan that the framework really runs for a requested one. All prices are for this plan.
  ParallelPlan as_run(const ParallelPlan& requested) const;
  // The price of a layer under the plan, and the op list that it is computed from.
  const LayerCost& layer(LayerKind kind, const ParallelPlan& plan, Recomputed what);
  OpList op_list(LayerKind kind, const ParallelPlan& plan) const;
  // The pricing of the list's steps; valid as long as the evaluator.
  Pricing pricing(const ParallelPlan& plan) const;

 private:
  // Kind and recomputation; sequence parallelism, whether gradients are accumulated in a buffer,
  // the dispatcher and the exchange of keys; tp and cp; ep and etp; micro-batch; strides.
  using LayerKey = std::array<std::int64_t, 7>;
  using ScheduleKey = std::array<std::int64_t, 4>;  // kind, p, v, m
  struct Layers;
  Seconds kernel_launch() const;
  LayerContext context(const ParallelPlan& plan) const;
  void price_stages(const ParallelPlan& plan);
  void price_offload(const ParallelPlan& plan);
  std::vector<std::string> notes() const;
  std::int64_t ranks_on_a_node() const;
  double computing_together(const ParallelPlan& plan) const;
  void share_node(const ParallelPlan& plan);
  void raise_clocks(const ParallelPlan& plan);
  double idle_share(const ParallelPlan& plan) const;
  void price_zero(const ParallelPlan& plan);
  StageTransfer transfer_of(const ParallelPlan& plan, std::int64_t tokens) const;
  void price_transfer(const ParallelPlan& plan);
  void price_data_parallel(const ParallelPlan& plan);
  void price_embedding(const ParallelPlan& plan);
  void find_tables(int last);
  void add_mtp(const ParallelPlan& plan, std::size_t rank);
  void hide_expert_exchange(const ParallelPlan& plan);
  void add_decoder_start(const ParallelPlan& plan, std::size_t stage);
  void place_layers(const ParallelPlan& plan);
  const PlanCost& price(const ParallelPlan& plan);
  Seconds optimizer_time(std::size_t rank, const ParallelPlan& plan) const;
  Layers layers_for(const ParallelPlan& plan);
  Bytes kept_by(const Layers& layers, const ParallelPlan& plan, int virtual_stage) const;
  Bytes working_by(const Layers& layers, const ParallelPlan& plan, int virtual_stage) const;
  Bytes working_on(const Layers& layers, const ParallelPlan& plan, int rank) const;
  Bytes held_by(const Layers& layers, const ParallelPlan& plan, int rank, double& in_flight);
  Bytes held_in_turn(const Layers& layers, const ParallelPlan& plan, int rank, double& in_flight);
  Bytes buffers_of(const ParallelPlan& plan, int rank, double largest_layer) const;
  Bytes passed(const ParallelPlan& plan, std::int64_t tokens) const;
  void price_memory(const ParallelPlan& plan);
  void bound(const ParallelPlan& plan);
  void bound_split(const ParallelPlan& plan);
  Bytes held_listed(const Layers& layers, const ParallelPlan& plan, int rank) const;
  Bytes held_split(const Layers& layers, const ParallelPlan& plan, int rank);
  Bytes micro_batch_on(const Layers& layers, const ParallelPlan& plan, int rank) const;
  Bytes pending_by(const Layers& layers, const ParallelPlan& plan, int virtual_stage) const;
  Bytes held_by_uneven(const Layers& layers, const ParallelPlan& plan, int rank, double& in_flight);
  template <class Held, class Find>
  const Held& held_once(std::map<ScheduleKey, Held>& cache, const ParallelPlan& plan, Find find);
  const SimulationProgram& program_of(const ParallelPlan& plan, std::int64_t micro_batches);
  EndTerms end_terms(const ParallelPlan& plan) const;
  bool pipeline_leaves_node(const ParallelPlan& plan) const;
  Seconds tensor_host(const ParallelPlan& plan) const;
  const PlanCost& cost_by_stage(const ParallelPlan& plan);
  void copy_stage(const PlanCost& own, std::size_t stage);
  void price_meshes(const std::vector<StageMesh>& meshes, const std::vector<LayerMix>& mixes);
  void price_boundaries(const std::vector<StageMesh>& meshes);
  void price_ends(const std::vector<StageMesh>& meshes);
  void bound_by_stage(const ParallelPlan& plan);
  Estimate estimate_replicas(const ParallelPlan& plan);
  Timeline timeline_of_replicas(const ParallelPlan& plan);
  std::int64_t simulated_micro_batches(const ParallelPlan& plan) const;
  SimulationResult simulated(const ParallelPlan& plan, const PipelineTimes& times);

  ModelSpec model_;
  ClusterSpec cluster_;
  TrainingSpec training_;
  ModelFlops model_flops_;
  PlanCost cost_;
  ParallelPlan as_run_;  // the plan being priced, when the framework changes the requested one
  int between_ = 0;      // stages of the plan that are not priced
  std::vector<double> scratch_;
  std::map<LayerKey, LayerCost> layers_;
  std::map<ScheduleKey, std::vector<std::vector<EndMix>>> end_mixes_;
  std::map<ScheduleKey, InFlight> in_flight_;
  std::map<ScheduleKey, SimulationProgram> programs_;
  std::int64_t kept_actions_ = 0;    // of programs_
  std::vector<Evaluator> parts_;     // one per kind of device, for heterogeneous stages
  SimulationProgram split_program_;  // of the last plan whose schedule depends on its times, or is
                                     // listed
};

// Bytes per parameter, by kind (Rajbhandari et al. 2020, arXiv:1910.02054, section 3.1: 2 + 2 + 12
// with fp16 gradients).
double weight_bytes_per_parameter(const TrainingSpec& training);
double gather_bytes_per_parameter(const TrainingSpec& training);  // of a gather of sharded weights
double gradient_bytes_per_parameter(const TrainingSpec& training);
double optimizer_bytes_per_parameter(const TrainingSpec& training);

// Memory traffic of an optimizer step. It clears the gradient buffers of `gradients` parameters;
// computes the norm, unscales and clips over its `own` parameters; Adam reads the gradient, reads
// and writes its states, and writes the parameters (SimuMax counts the same passes).
Bytes optimizer_traffic(double own, double gradients, const TrainingSpec& training);
inline constexpr int optimizer_passes = 5;

}  // namespace costmodel
