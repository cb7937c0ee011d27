#include "costmodel/estimate/pricing.hpp"

#include <algorithm>

#include "costmodel/estimate/layer_mix.hpp"
#include "costmodel/plan/mesh.hpp"

namespace costmodel {

// Narrow weights are kept twice, by rows and by columns, mxfp8 with a scale for 32 (Transformer
// Engine).
double weight_bytes_per_parameter(const TrainingSpec& t) {
  if (t.fine_tuning.fp32_adapters) return storage_bytes(Precision::fp32);
  if (t.gather_precision == Precision::mxfp8) return 2 * (1 + 1.0 / 32);
  if (t.gather_precision == Precision::fp8) return 2;
  return storage_bytes(t.precision);
}

// mxfp8 weights are gathered in bf16 and quantised afterwards (Megatron-LM, --reuse-grad-buf-for-
// mxfp8-param-ag).
double gather_bytes_per_parameter(const TrainingSpec& t) {
  return t.gather_precision == Precision::fp8 ? 1 : storage_bytes(t.precision);
}

double gradient_bytes_per_parameter(const TrainingSpec& t) {
  return storage_bytes(t.gradient_precision);
}

double master_bytes_per_parameter(const TrainingSpec& t) {
  if (t.precision == Precision::fp32 || !t.stack.memory.master_weights) return 0;
  return t.fine_tuning.adapts() && t.stack.memory.plain_adapters ? 0 : 4;
}

double optimizer_bytes_per_parameter(const TrainingSpec& t) {
  const double master = master_bytes_per_parameter(t), moment = storage_bytes(t.moment_precision);
  if (keeps_alike(t.optimizer)) return master + moments_kept(t.optimizer) * moment;
  constexpr double large = 1 << 16;  // rows and columns
  return master + moments_of_matrix(large, large, t.optimizer, moment).value / (large * large);
}

Bytes moments_kept_on(const ParallelPlan& plan, const OptimizerShare& share) {
  if (plan.zero < 1) return share.moments;
  return Bytes(sharded_states(share.moments.value, share.expert_moments.value, plan));
}

const KernelSet& kernel_set(const TrainingSpec& training) {
  return training.stack.kernels.used(training.overlap.compile, training.fine_tuning.adapts());
}

double fullest_load(const ParallelPlan& plan, const TrainingSpec& t) {
  if (t.expert_load.given()) return t.expert_load.of_fullest(plan.ep);
  return t.capacity_factor > 0 ? t.capacity_factor : t.expert_imbalance;
}

bool is_padded(const TrainingSpec& t) { return t.capacity_factor > 0 && !t.expert_load.given(); }

Workload with_mean_load(Workload on) {
  on.training.expert_imbalance = 1;
  on.training.expert_load = {};
  on.training.capacity_factor = 0;
  return on;
}

namespace {

// The fullest rank receives as many more rows. Padding travels where every expert's rows do, and is
// added after the exchange by dispatchers that send one copy a rank (Megatron-LM,
// core/transformer/moe/token_dispatcher.py: drop_and_pad).
double exchanged_load(const ParallelPlan& plan, const TrainingSpec& t) {
  return is_padded(t) && sends_once_a_rank(plan.experts.dispatcher) ? 1 : fullest_load(plan, t);
}

}  // namespace

bool keeps_narrow_weights(const TrainingSpec& t) {
  return is_narrow(t.precision) && is_narrow(t.gather_precision);
}

LayerContext context_of(const ParallelPlan& plan, const Workload& on) {
  const StackSpec& stack = on.training.stack;
  const bool compiled = on.training.overlap.compile;  // a compiler fuses element-wise chains
  return {.tp = plan.tp,
          .cp = plan.cp,
          .cp_comm = plan.cp_comm,
          .ep = plan.ep,
          .etp = plan.etp,
          .sequence_parallel = plan.sequence_parallel,
          .micro_batch = plan.micro_batch,
          .sequence = on.training.sequence,
          .decoder_sequence = on.training.decoder_sequence,
          .element = storage_bytes(on.training.precision),
          .operands_of_8_bits =
              on.training.precision == Precision::fp8 || on.training.precision == Precision::mxfp8,
          .one_scale = on.training.precision == Precision::fp8,
          .keeps_narrow_weights = keeps_narrow_weights(on.training),
          .saved_input = stack.memory.narrow_saved_inputs && is_narrow(on.training.precision)
                             ? operand_bytes(on.training.precision)
                             : 0,
          .attention = stack.kernels.attention,
          .attention_as_measured = !kernel_set(on.training).empty(),
          .fused_softmax = stack.kernels.fused_softmax || compiled,
          .fused_softmax_batches = compiled ? 1 : stack.kernels.fused_softmax_batches,
          .triangular_softmax = stack.kernels.triangular_softmax,
          .fused_bias_activation = stack.kernels.fused_bias_activation || compiled,
          .fused_bias_dropout_add = stack.kernels.fused_bias_dropout_add || compiled,
          .loss = stack.kernels.loss,
          .fp32_logits = stack.memory.fp32_logits,
          .expert_group = stack.experts.group,
          .causal_skip = stack.kernels.causal_skip,
          .dispatcher = plan.experts.dispatcher,
          .expert_load = fullest_load(plan, on.training),
          .exchanged_load = exchanged_load(plan, on.training),
          .expert_start = on.training.fused_grouped_mlp      ? stack.experts.start_fused
                          : is_narrow(on.training.precision) ? stack.experts.start_narrow
                                                             : stack.experts.start,
          .fused_grouped_mlp = on.training.fused_grouped_mlp,
          .unfused_expert_bias = stack.experts.unfused_bias,
          .shared_overlap = plan.experts.shared_overlap,
          .narrow_attention = on.training.narrow_attention,
          .tuning = on.training.fine_tuning,
          .towers = on.training.towers,
          .attended = on.training.packing.attended,
          .scales_adapter_output = stack.kernels.scales_adapter_output,
          .kernels = &kernel_set(on.training)};
}

// ZeRO-3 reduce-scatters a weight gradient immediately, where there are ranks to scatter it to.
bool joins_buffer(const ParallelPlan& plan) { return plan.zero < 3 || plan.replicas() == 1; }

// A graph is launched once for all of its kernels, whatever the framework's own launches cost.
Seconds kernel_launch(const Workload& on) {
  if (on.training.overlap.cuda_graph) return on.cluster.device.graph_kernel_launch;
  return max(on.cluster.device.kernel_launch, on.training.stack.host.kernel_launch);
}

bool pipeline_leaves_node(const ParallelPlan& plan, const ClusterSpec& cluster) {
  return plan.pp > 1 && plan.devices() > cluster.devices_per_node;
}

namespace {

// Accumulation of a weight gradient into its buffer. In fp32 (and in 16 bits, if the framework has
// the kernel) the product's own epilogue does it: read 4 bytes and write 4 instead of 2, half of it
// exposed (measured on 136 A100 and 384 B200 products of SimuMax's tables). Otherwise a separate
// kernel: read both, write one, or as the stack states for fp32 buffers.
double accumulation_bytes(const TrainingSpec& training, const ParallelPlan& plan) {
  if (!joins_buffer(plan)) return 0;
  if (kernel_set(training).find(KernelOp::accumulate, false) != nullptr)
    return 0;  // estimate/shard_copies
  const double gradient = gradient_bytes_per_parameter(training);
  if (gradient > 2 && training.stack.kernels.accumulation_bytes > 0)
    return training.stack.kernels.accumulation_bytes;
  const bool fused = gradient > 2 || training.stack.kernels.fused_accumulation;
  return fused ? (2 * gradient - 2) / 2 : 3 * gradient;
}

// Whether the host of a layer with experts waits for the number of rows of each.
bool waits_for_rows(const TrainingSpec& t) {
  return is_narrow(t.precision) && !is_padded(t) && t.expert_buffer_factor == 0 &&
         !t.overlap.cuda_graph;
}

// Of calls that no graph replays and no compiler fuses.
Seconds host_call(const TrainingSpec& t, const DeviceSpec& device) {
  const bool eager = !t.overlap.cuda_graph && !t.overlap.compile;
  return eager && t.stack.host.counts_calls ? device.host_call : Seconds(0);
}

ExpertRouting routing_of(const ParallelPlan& plan, const Workload& on) {
  const ModelSpec& model = on.model;
  return {plan.experts.dispatcher,
          std::max<std::int64_t>(1, model.top_k),
          model.expert_groups,
          model.expert_groups_per_token,
          on.training.stack.experts.exchange_efficiency,
          model.experts};
}

// Ranks do not arrive at a collective at the same time: the wait is no shorter where their hosts
// set the pace.
Seconds tensor_host(const ParallelPlan& plan, const Workload& on) {
  const StackHost& host = on.training.stack.host;
  if (plan.tp == 1) return {};
  return host.collective_wait + host.tensor_collective +
         (pipeline_leaves_node(plan, on.cluster) ? plan.tp * host.tensor_rank : Seconds(0));
}

}  // namespace

Pricing pricing_of(const ParallelPlan& plan, const Workload& on) {
  const Mesh mesh(plan);
  const StackSpec& stack = on.training.stack;
  const bool compiled = on.training.overlap.compile;
  const KernelSet& set = kernel_set(on.training);
  return {&on.cluster,
          mesh.layout(Axis::tensor, on.cluster),
          mesh.layout(Axis::context, on.cluster),
          layout_of(Axis::expert, plan, on.cluster),
          layout_of(Axis::expert_tensor, plan, on.cluster),
          on.training.precision,
          on.training.overlap,
          on.training.stack.collectives.backward_tp_overlap,
          kernel_launch(on),
          on.training.overlap.cuda_graph ? Seconds(0) : stack.host.recomputed,
          on.training.overlap.cuda_graph ? Seconds(0) : on.cluster.launch_blocked,
          compiled ? 1.0 : stack.kernels.elementwise_factor,
          compiled ? 1.0 : stack.experts.permute_factor,
          accumulation_bytes(on.training, plan),
          on.training.stack.kernels.attention_factor,
          on.training.stack.host.collective_wait,
          routing_of(plan, on),
          tensor_host(plan, on),
          waits_for_rows(on.training) ? on.training.stack.experts.dropless_host : Seconds(0),
          plan.experts.shared_overlap,
          set.empty() ? nullptr : &set,
          stack.memory.checkpoint_stops,
          keeps_narrow_weights(on.training),
          host_call(on.training, on.cluster.device),
          {plan.experts.dispatcher, plan.ep > 1, on.training.capacity_factor > 0,
           is_padded(on.training), is_narrow(on.training.precision),
           on.model.router_score == RouterScore::sigmoid, on.model.kv_lora_rank > 0,
           stack.kernels.fused_router, stack.kernels.fused_rotary, plan.cp}};
}

// The plan as the framework runs it. torchtitan's selective recomputation repeats every second
// layer; in a pipeline FSDP2 neither reshards after forward nor reduces before the last micro-batch
// (torchtitan, parallelize_llama.py: reshard_after_forward; torch.distributed.pipelining, stage.py:
// set_requires_gradient_sync), which is ZeRO-1 in memory and traffic.
ParallelPlan plan_as_run(const ParallelPlan& requested, const StackSpec& stack) {
  ParallelPlan plan = requested;
  plan.recompute = recompute_as_run(requested.recompute, stack.memory);
  if (stack.zero.whole_in_pipeline && plan.pp > 1) plan.zero = std::min(plan.zero, 1);
  return plan;
}

}  // namespace costmodel
