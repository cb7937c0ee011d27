// What an evaluator prices plans for, and what of a plan the price of its operators needs.
#pragma once

#include "costmodel/cost/layer_cost.hpp"
#include "costmodel/machine/cluster_spec.hpp"
#include "costmodel/model/model_spec.hpp"
#include "costmodel/operators/transformer.hpp"
#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/plan/training_spec.hpp"

namespace costmodel {

// One training of one model on one cluster: what plans are compared for.
struct Workload {
  ModelSpec model;
  ClusterSpec cluster;
  TrainingSpec training;
};

// Bytes per parameter, by kind (Rajbhandari et al. 2020, arXiv:1910.02054, section 3.1: 2 + 2 + 12
// with fp16 gradients).
// Of trained parameters; a frozen one takes FineTuning::base_bytes and nothing else.
double weight_bytes_per_parameter(const TrainingSpec& training);
double gather_bytes_per_parameter(const TrainingSpec& training);  // of a gather of sharded weights
double gradient_bytes_per_parameter(const TrainingSpec& training);
double master_bytes_per_parameter(const TrainingSpec& training);  // the optimizer's fp32 copy
// The master copy and the moments; of optimizers that treat parameters unlike, those of a large
// matrix (cost/optimizer_step.hpp has them all).
double optimizer_bytes_per_parameter(const TrainingSpec& training);

// The moments that a device keeps of its rank's, of optimizers that treat parameters unlike:
// sharded from ZeRO 1 on.
Bytes moments_kept_on(const ParallelPlan& plan, const OptimizerShare& share);

// How gradients are reduced between the groups of a hybrid sharding, once an iteration.
inline CollectiveKind outer_reduction(const ParallelPlan& plan) {
  return plan.shards_states_further() ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
}

// How gradients are reduced over data parallel ranks. Muon's ranks own full matrices, for which
// Megatron-LM reduces as without ZeRO (core/optimizer/layer_wise_optimizer.py).
inline CollectiveKind gradient_reduction(int zero, const TrainingSpec& training) {
  const bool all = zero == 0 || (zero == 1 && training.stack.zero.all_reduce) ||
                   training.optimizer == Optimizer::muon;
  return all ? CollectiveKind::all_reduce : CollectiveKind::reduce_scatter;
}

// How the parameters that ZeRO's ranks have updated, or keep, reach all of them.
// Whether parameters are sharded until each micro-batch's forward gathers them; ZeRO 3's are again
// before its backward.
inline bool gathers_in_forward(const ParallelPlan& plan, const TrainingSpec& training) {
  return plan.zero == 3 || (plan.zero == 2 && plan.pp == 1 && training.stack.zero.regathers);
}

inline CollectiveKind parameter_gather(int zero, const TrainingSpec& training) {
  return zero == 1 && training.stack.zero.broadcasts ? CollectiveKind::broadcast
                                                     : CollectiveKind::all_gather;
}

// The least time of a kernel: the host's launch, or its replay from a graph.
Seconds kernel_launch(const Workload& on);

// Whether a weight gradient is added to a buffer: ZeRO-3 reduce-scatters it immediately.
bool joins_buffer(const ParallelPlan& plan);

// Whether a pipeline of several stages leaves the node. Its ranks lie outermost, so one on several
// nodes does.
bool pipeline_leaves_node(const ParallelPlan& plan, const ClusterSpec& cluster);

// The plan that the framework really runs for a requested one.
ParallelPlan plan_as_run(const ParallelPlan& requested, const StackSpec& stack);

// Rows of the fullest expert-parallel rank's experts relative to the mean: by training.expert_load,
// else the capacity to which they are padded, else training.expert_imbalance.
double fullest_load(const ParallelPlan& plan, const TrainingSpec& training);

// Whether experts compute padding: a capacity without a load that cuts it.
bool is_padded(const TrainingSpec& training);

// The same workload where every expert has the mean's rows.
Workload with_mean_load(Workload on);

// Everything of the plan that changes the operators of a layer, and everything that changes their
// price. The pricing refers to the workload's cluster.
LayerContext context_of(const ParallelPlan& plan, const Workload& on);
// Whether trained weights are kept as their products' operands, which are made once an iteration
// and in no pass (training.parameter_gather_precision).
bool keeps_narrow_weights(const TrainingSpec& training);
// The kernels of the framework between the products; empty: unknown.
const KernelSet& kernel_set(const TrainingSpec& training);

Pricing pricing_of(const ParallelPlan& plan, const Workload& on);

}  // namespace costmodel
