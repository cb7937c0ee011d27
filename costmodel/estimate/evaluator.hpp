// The facade: a plan in, its time, memory and traffic out.
//
// An Evaluator belongs to one (model, cluster, training) and keeps the prices of layers between
// plans, so that a search pays for a plan a few additions a stage. Not thread-safe; make one for
// each thread.
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
#include "costmodel/machine/cluster_spec.hpp"
#include "costmodel/model/model_spec.hpp"
#include "costmodel/operators/transformer.hpp"
#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/plan/stage_plan.hpp"
#include "costmodel/schedule/simulator.hpp"
#include "costmodel/schedule/zero_bubble.hpp"

namespace costmodel {

// One pipeline rank's memory in its steady state (optimizer states exist, every in-flight
// micro-batch held).
struct StageMemory {
  Bytes weights;
  Bytes gradients;
  Bytes optimizer;
  Bytes activations;  // kept by in-flight micro-batches, and the working tensors of the layer being
                      // computed
  Bytes buffers;      // transfers, gathered parameters, contexts, allocator reserve
  double in_flight_micro_batches = 0;
  Bytes each;  // what one more in flight adds to the total, where a rank has one chunk
  Bytes total() const { return weights + gradients + optimizer + activations + buffers; }
};

// One micro-batch from the devices of one stage to those of the next, cut otherwise there: each
// device sends and takes what is its own, and pieces are gathered over the tensor group.
struct StageTransfer {
  Seconds time;
  Bytes sent;      // by one device
  Bytes gathered;  // what one device sends of a gather; 0 where nothing is cut in pieces
};
struct StageBoundary {
  StageTransfer forward, backward;
};

// Everything of a plan that needs no simulation: the stage-cost table.
struct PlanCost {
  std::int64_t micro_batches = 0;
  PipelineTimes times;  // by virtual stage: forward and backward of one micro-batch
  std::vector<Cost> forward, backward, recompute;  // the same, itemised
  std::vector<Cost> weight_gradient;  // the part of backward that runs apart; empty where none does
  HeldShares shares;  // what is kept for backward, and for that part; empty where none does
  std::vector<Seconds> zero_forward,
      zero_backward;            // exposed parameter gathers and reductions inside a micro-batch
  std::vector<double> weights;  // parameters by pipeline rank, on one device
  std::vector<double> expert_weights;     // of them, of experts
  std::vector<double> partial_weights;    // of them, with gradients to be summed over tensor ranks
  std::vector<LayerMix> layers;           // by virtual stage
  std::vector<Seconds> gradient_exposed;  // by rank: gradient reduction not hidden by backward
  std::vector<Seconds> gather_exposed;    // by rank: parameter gather not hidden by forward
  std::vector<Seconds> optimizer;         // by rank
  Seconds embedding_reduce;               // of copies of the token table, on `table_ranks`
  std::vector<std::size_t> table_ranks;   // that hold one; empty where one rank does
  Bytes transfer_bytes;                   // of one pipeline transfer, by one device
  Bytes gradient_bytes;                   // largest rank's gradient message
  std::vector<StageMemory> memory;        // by rank
  std::vector<StageBoundary> boundaries;  // behind each stage but the last, where they differ
  std::vector<Bytes> capacity;            // by rank, where stages differ
  std::size_t fullest = 0;                // the rank whose memory is full to the largest share
  int offloaded_layers = 0;               // whose activations wait in host memory
  Seconds offload_exposed;                // of their transfers, in a micro-batch
  Bytes peak;
  Seconds pipeline_bound;  // no schedule of these stages ends earlier
  Seconds lower_bound;     // no simulated iteration is shorter

  bool sums_table(std::size_t rank) const {
    return std::find(table_ranks.begin(), table_ranks.end(), rank) != table_ranks.end();
  }
};

struct Breakdown {
  Seconds compute, recompute, tp_comm, cp_comm, ep_comm, pp_comm, dp_comm, bubble, optimizer, other;
  Seconds total() const {
    return compute + recompute + tp_comm + cp_comm + ep_comm + pp_comm + dp_comm + bubble +
           optimizer + other;
  }
};

struct Interval {
  Seconds low, high;
};

struct Estimate {
  ParallelPlan plan;
  std::int64_t micro_batches = 0;  // of a replica; where groups differ, the most
  Seconds iteration;
  Interval interval;
  Breakdown breakdown;  // of the critical rank; adds up to iteration
  int critical_rank = 0;
  double bubble_fraction = 0;  // bubble time / (m·(t_f + t_b)) of the critical rank
  std::vector<Seconds> stage_forward,
      stage_backward;                 // by virtual stage, one micro-batch; recomputation and weight
                                      // gradient in backward
  std::vector<StageMemory> memory;    // by pipeline rank
  Bytes peak, capacity;               // where devices differ, of the stage fullest for its own
  std::size_t fullest = 0;            // that stage
  std::vector<Bytes> stage_capacity;  // by pipeline rank, where stages differ
  std::vector<StageMesh> meshes;      // the same: each stage's own plan and place; of groups that
                                      // hold replicas each has several stages here
  Bytes reported_peak;                // the peak as the framework's own log would give it
  bool fits() const { return peak <= capacity; }
  Traffic traffic;                    // of the device that sends most
  std::vector<Traffic> rank_traffic;  // by pipeline rank, of one of its devices
  double parameters = 0, active_parameters = 0;
  Flops model_flops, hardware_flops;  // of the whole iteration, all devices
  double tokens_per_s = 0;
  double mfu = 0, hfu = 0;  // of the devices' peak
  FlopsPerSecond model_rate_per_device;
  std::vector<std::string> notes;
};

// Schedules of more actions are simulated in part and continued by their period.
inline constexpr std::int64_t most_simulated_actions = std::int64_t{1} << 20;
// A timeline is drawn whole: one of more actions is refused.
inline constexpr std::int64_t most_drawn_actions = std::int64_t{1} << 22;

// What an iteration has beside its pipeline: host time, waiting for the slowest node, and whether
// ranks end apart, without meeting at the gradient norm.
struct EndTerms {
  Seconds host;
  double straggler = 1;
  bool apart = false;
};

struct Ending;  // costmodel/estimate/iteration_end.hpp

class Evaluator {
 public:
  Evaluator(ModelSpec model, ClusterSpec cluster, TrainingSpec training);

  // What follows is of so many sequences an iteration; prices of layers are kept.
  void train_on(std::int64_t global_batch);

  // The stage-cost table of a valid plan without replica groups, which have one each. The reference
  // stays good until the next call.
  const PlanCost& cost(const ParallelPlan& plan);
  // The same with other layers on the virtual stages than the plan's own, as many stages as it has;
  // of how many each recomputes, `plan.recompute` says only the granularity. Together they need not
  // make up the model: so a whole list of stages that a layout may have is priced at once.
  const PlanCost& cost(const ParallelPlan& plan, const std::vector<LayerMix>& stages);
  // The first and the last stages of such a pipeline without those between, as many as there are
  // mixes: a pipeline of these alone, with fewer micro-batches in flight, but as long a bubble.
  const PlanCost& cost_of_ends(const ParallelPlan& plan, const std::vector<LayerMix>& stages);
  // Simulates on top of cost(), of the same plans. Throws InternalError on an invalid plan.
  Seconds iteration_time(const ParallelPlan& plan);
  // The same in parts.
  Ending end_of(const ParallelPlan& plan);
  // Of any valid plan, and so is the timeline.
  Estimate estimate(const ParallelPlan& plan);
  // Throws ConfigError when the schedule has more than most_drawn_actions.
  Timeline timeline(const ParallelPlan& plan);

  const ModelSpec& model() const { return model_; }
  const ClusterSpec& cluster() const { return cluster_; }
  const TrainingSpec& training() const { return training_; }
  Flops model_flops() const { return model_flops_; }

  // What the framework makes of a plan: prices are of that.
  ParallelPlan as_run(const ParallelPlan& requested) const;
  // Price of a layer as the plan cuts it; the list it was made from with it.
  const LayerCost& layer(LayerKind kind, const ParallelPlan& plan, Recomputed what);
  OpList op_list(LayerKind kind, const ParallelPlan& plan) const;
  // What its steps are priced with; good as long as the evaluator.
  Pricing pricing(const ParallelPlan& plan) const;

 private:
  // Kind and recomputed, sequence parallel and whether gradients join a buffer with the exchange,
  // tp and cp, ep and etp, micro-batch; strides.
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
  void add_decoder_start(const ParallelPlan& plan, std::size_t stage);
  void place_layers(const ParallelPlan& plan);
  const PlanCost& price(const ParallelPlan& plan);
  Seconds optimizer_time(std::size_t rank, const ParallelPlan& plan) const;
  Layers layers_for(const ParallelPlan& plan);
  Bytes kept_by(const Layers& layers, const ParallelPlan& plan, int virtual_stage) const;
  Bytes working_by(const Layers& layers, const ParallelPlan& plan, int virtual_stage) const;
  Bytes working_on(const Layers& layers, const ParallelPlan& plan, int rank) const;
  Bytes held_by(const Layers& layers, const ParallelPlan& plan, int rank, double& in_flight);
  Bytes buffers_of(const ParallelPlan& plan, int rank, double largest_layer) const;
  Bytes passed(const ParallelPlan& plan, std::int64_t tokens) const;
  void price_memory(const ParallelPlan& plan);
  void bound(const ParallelPlan& plan);
  void bound_split(const ParallelPlan& plan);
  Bytes held_split(const Layers& layers, const ParallelPlan& plan, int rank);
  Bytes micro_batch_on(const Layers& layers, const ParallelPlan& plan, int rank) const;
  Bytes pending_by(const Layers& layers, const ParallelPlan& plan, int virtual_stage) const;
  Bytes held_by_uneven(const Layers& layers, const ParallelPlan& plan, int rank, double& in_flight);
  template <class Held, class Find>
  const Held& held_once(std::map<ScheduleKey, Held>& cache, const ParallelPlan& plan, Find find);
  const SimulationProgram& program_of(const ParallelPlan& plan, std::int64_t micro_batches);
  EndTerms end_terms(const ParallelPlan& plan) const;
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
  Flops model_flops_;
  PlanCost cost_;
  ParallelPlan as_run_;  // the plan being priced, where the framework makes another of it
  int between_ = 0;      // stages of it that are not priced
  std::vector<double> scratch_;
  std::map<LayerKey, LayerCost> layers_;
  std::map<ScheduleKey, std::vector<std::vector<EndMix>>> end_mixes_;
  std::map<ScheduleKey, InFlight> in_flight_;
  std::map<ScheduleKey, SimulationProgram> programs_;
  std::vector<Evaluator> parts_;     // one for each kind of devices, where stages differ
  SimulationProgram split_program_;  // of the last plan whose schedule depends on its times
};

// Bytes a parameter takes, by kind (Rajbhandari et al. 2020, arXiv:1910.02054, section 3.1: 2 + 2 +
// 12 with fp16 gradients).
double weight_bytes_per_parameter(const TrainingSpec& training);
double gradient_bytes_per_parameter(const TrainingSpec& training);
double optimizer_bytes_per_parameter(const TrainingSpec& training);

// What an optimizer step moves in its passes over memory: it clears `gradients` (so many
// parameters' are kept); takes the norm, unscales and clips over its `own`; Adam reads the gradient
// and reads and writes its states, then writes the parameters (SimuMax counts the same passes).
Bytes optimizer_traffic(double own, double gradients, const TrainingSpec& training);
inline constexpr int optimizer_passes = 5;

}  // namespace costmodel
