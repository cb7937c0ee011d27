#include "costmodel/estimate/evaluator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "costmodel/base/error.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/cost/device_time.hpp"
#include "costmodel/estimate/breakdown.hpp"
#include "costmodel/estimate/iteration_end.hpp"
#include "costmodel/estimate/layer_mix.hpp"
#include "costmodel/model/parameter_count.hpp"
#include "costmodel/plan/mesh.hpp"
#include "costmodel/plan/plan_schedule.hpp"
#include "costmodel/schedule/closed_form.hpp"

namespace costmodel {

// Narrow weights are kept twice, by rows and by columns, mxfp8 with a scale for 32 (Transformer
// Engine).
double weight_bytes_per_parameter(const TrainingSpec& t) {
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

double optimizer_bytes_per_parameter(const TrainingSpec& t) {
  const double master = t.precision != Precision::fp32 && t.stack.master_weights ? 4 : 0;
  return master + (t.sgd ? 1 : 2) * storage_bytes(t.moment_precision);
}

Evaluator::Evaluator(ModelSpec model, ClusterSpec cluster, TrainingSpec training)
    : model_(std::move(model)), cluster_(std::move(cluster)), training_(std::move(training)) {
  const ParallelPlan whole;
  const LayerMix all = layer_mix(model_, 0, static_cast<int>(model_.layers), {});
  const auto add = [&](LayerKind kind, int count) {
    model_flops_ += costmodel::model_flops(op_list(kind, whole), kind) *
                    (static_cast<double>(count) * static_cast<double>(training_.global_batch));
  };
  for (const LayerGroup& group : layer_groups(model_)) add(group.kind, all.*group.number);
  const auto more = static_cast<int>(model_.mtp_layers);
  add(LayerKind::head, 1 + more);
  if (more == 0) return;
  add(LayerKind::mtp_start, more);
  add(mtp_layer(model_), more);
}

LayerContext Evaluator::context(const ParallelPlan& plan) const {
  const StackSpec& stack = training_.stack;
  const bool compiled = training_.overlap.compile;  // a compiler fuses element-wise chains
  return {.tp = plan.tp,
          .cp = plan.cp,
          .cp_comm = plan.cp_comm,
          .ep = plan.ep,
          .etp = plan.etp,
          .sequence_parallel = plan.sequence_parallel,
          .micro_batch = plan.micro_batch,
          .sequence = training_.sequence,
          .decoder_sequence = training_.decoder_sequence,
          .element = storage_bytes(training_.precision),
          .saved_input = stack.narrow_saved_inputs && is_narrow(training_.precision)
                             ? operand_bytes(training_.precision)
                             : 0,
          .attention = stack.attention,
          .fused_softmax = stack.fused_softmax || compiled,
          .fused_softmax_batches = compiled ? 1 : stack.fused_softmax_batches,
          .triangular_softmax = stack.triangular_softmax,
          .fused_bias_activation = stack.fused_bias_activation || compiled,
          .fused_bias_dropout_add = stack.fused_bias_dropout_add || compiled,
          .fused_cross_entropy = stack.fused_cross_entropy,
          .fp32_logits = stack.fp32_logits,
          .expert_group = stack.expert_group,
          .causal_skip = stack.causal_skip,
          .dispatcher = plan.experts.dispatcher,
          .expert_load = training_.capacity_factor > 0 ? training_.capacity_factor
                                                       : training_.expert_imbalance,
          .expert_start = training_.fused_grouped_mlp      ? stack.expert_start_fused
                          : is_narrow(training_.precision) ? stack.expert_start_narrow
                                                           : stack.expert_start,
          .fused_grouped_mlp = training_.fused_grouped_mlp,
          .narrow_attention = training_.narrow_attention};
}

namespace {

// ZeRO-3 reduce-scatters a weight gradient immediately.
bool joins_buffer(const ParallelPlan& plan) { return plan.zero < 3; }

// Accumulation of a weight gradient into its buffer. In fp32 (and in 16 bits, if the framework has
// the kernel) the product's own epilogue does it: read 4 bytes and write 4 instead of 2, half of it
// exposed (measured on 136 A100 and 384 B200 products of SimuMax's tables). Otherwise a separate
// kernel: read both, write one.
double accumulation_bytes(const TrainingSpec& training, const ParallelPlan& plan) {
  if (!joins_buffer(plan)) return 0;
  const double gradient = gradient_bytes_per_parameter(training);
  const bool fused = gradient > 2 || training.stack.fused_accumulation;
  return fused ? (2 * gradient - 2) / 2 : 3 * gradient;
}

}  // namespace

namespace {

// Whether the host of a layer with experts waits for the number of rows of each.
bool waits_for_rows(const TrainingSpec& t) {
  return is_narrow(t.precision) && t.capacity_factor == 0 && t.expert_buffer_factor == 0 &&
         !t.overlap.cuda_graph;
}

}  // namespace

// A graph is launched once for all of its kernels, whatever the framework's own launches cost.
Seconds Evaluator::kernel_launch() const {
  if (training_.overlap.cuda_graph) return cluster_.device.graph_kernel_launch;
  return max(cluster_.device.kernel_launch, training_.stack.kernel_launch);
}

// Pipeline ranks lie outermost, so a pipeline on several nodes crosses them.
bool Evaluator::pipeline_leaves_node(const ParallelPlan& plan) const {
  return plan.pp > 1 && plan.devices() > cluster_.devices_per_node;
}

// Zero where the framework's host keeps up with the device whatever the plan.
Seconds Evaluator::tensor_host(const ParallelPlan& plan) const {
  const StackSpec& stack = training_.stack;
  if (plan.tp == 1) return {};
  return stack.tensor_collective_host +
         (pipeline_leaves_node(plan) ? plan.tp * stack.tensor_rank_host : Seconds(0));
}

Pricing Evaluator::pricing(const ParallelPlan& plan) const {
  const Mesh mesh(plan);
  const StackSpec& stack = training_.stack;
  const bool compiled = training_.overlap.compile;
  return {&cluster_,
          mesh.layout(Axis::tensor, cluster_),
          mesh.layout(Axis::context, cluster_),
          layout_of(Axis::expert, plan, cluster_),
          layout_of(Axis::expert_tensor, plan, cluster_),
          training_.precision,
          training_.overlap,
          training_.stack.backward_tp_overlap,
          kernel_launch(),
          training_.overlap.cuda_graph ? Seconds(0) : cluster_.launch_blocked,
          compiled ? 1.0 : stack.elementwise_factor,
          compiled ? 1.0 : stack.permute_factor,
          accumulation_bytes(training_, plan),
          training_.stack.attention_factor,
          training_.stack.collective_wait,
          {plan.experts.dispatcher, std::max<std::int64_t>(1, model_.top_k), model_.expert_groups,
           model_.expert_groups_per_token, training_.stack.exchange_efficiency},
          tensor_host(plan),
          waits_for_rows(training_) ? training_.stack.dropless_host : Seconds(0),
          plan.experts.shared_overlap};
}

OpList Evaluator::op_list(LayerKind kind, const ParallelPlan& plan) const {
  return build_layer(kind, model_, context(plan));
}

const LayerCost& Evaluator::layer(LayerKind kind, const ParallelPlan& plan, Recomputed what) {
  const auto pair = [](std::int64_t a, std::int64_t b) { return a << 32 | b; };
  const bool slower_in_pipeline =
      training_.stack.tensor_rank_host.value > 0 && pipeline_leaves_node(plan);
  LayerKey key{pair(static_cast<std::int64_t>(kind), static_cast<std::int64_t>(what)),
               pair((plan.sequence_parallel ? 1 : 0) + (joins_buffer(plan) ? 2 : 0) +
                        (plan.experts.shared_overlap ? 4 : 0) + (slower_in_pipeline ? 8 : 0) +
                        (static_cast<std::int64_t>(plan.experts.dispatcher) << 4),
                    static_cast<std::int64_t>(plan.cp_comm)),
               pair(plan.tp, plan.cp),
               pair(plan.ep, plan.etp),
               plan.micro_batch,
               0,
               0};
  if (plan.rank_order != default_rank_order) {  // by default the sizes say how far ranks are apart
    const Mesh mesh(plan), experts = expert_mesh(plan);
    key[5] = pair(mesh.stride(Axis::tensor), mesh.stride(Axis::context));
    key[6] = pair(experts.stride(Axis::tensor), experts.stride(Axis::expert));
  }
  const auto found = layers_.find(key);
  if (found != layers_.end()) return found->second;
  const OpList list = op_list(kind, plan);
  LayerCost cost = layer_cost(list, what, pricing(plan));
  cost.partial_weights = partial_weights(list, context(plan));
  return layers_.emplace(key, cost).first->second;
}

// A schedule with split backward is generated for the times of the last call of cost().
const SimulationProgram& Evaluator::program_of(const ParallelPlan& plan, std::int64_t m) {
  if (splits_backward(plan.schedule) || plan.listed != nullptr) {
    split_program_ = compile(schedule_of(plan, m, cost_.times, cost_.shares));
    return split_program_;
  }
  const ScheduleKey key{static_cast<std::int64_t>(plan.schedule), plan.pp, plan.vpp, m};
  const auto found = programs_.find(key);
  if (found != programs_.end()) return found->second;
  const std::int64_t actions = 2 * m * plan.virtual_stages();
  if (kept_actions_ + actions > most_kept_actions) {
    programs_.clear();
    kept_actions_ = 0;
  }
  kept_actions_ += actions;
  const Schedule schedule = generate(plan.schedule, plan.pp, plan.vpp, static_cast<int>(m));
  return programs_.emplace(key, compile(schedule)).first->second;
}

// Micro-batches to simulate: all, or enough that the schedule has long been periodic, congruent to
// m modulo p.
std::int64_t Evaluator::simulated_micro_batches(const ParallelPlan& plan) const {
  const std::int64_t m = plan.micro_batches(training_.global_batch);
  if (plan.listed != nullptr) return m;
  const std::int64_t p = plan.pp;
  // A schedule with split backward is generated for every plan, so a shorter one is simulated.
  const std::int64_t most =
      splits_backward(plan.schedule) ? most_simulated_actions / 8 : most_simulated_actions;
  const std::int64_t enough = std::max(8 * p, most / (2 * p * plan.vpp) / p * p);
  return m <= enough + p ? m : enough + m % p;
}

namespace {

// By virtual stage, including a separate weight gradient.
std::vector<Seconds> whole_backward(const PipelineTimes& times) {
  std::vector<Seconds> backward = times.backward;
  for (std::size_t k = 0; k < times.weight_gradient.size(); ++k)
    backward[k] += times.weight_gradient[k];
  return backward;
}

// The time of one micro-batch on a rank.
Seconds busy_of(const PipelineTimes& times, const ParallelPlan& plan, int rank) {
  Seconds busy;
  for (int v = 0; v < plan.vpp; ++v) {
    const auto k = static_cast<std::size_t>(stage_of(plan.schedule, plan.pp, v, rank));
    const bool split = !times.weight_gradient.empty();
    const Seconds gradient = split ? times.weight_gradient[k] : Seconds(0);
    busy += times.forward[k] + (times.backward[k] + gradient);
  }
  return busy;
}

}  // namespace

// A schedule repeats with every p micro-batches once its pipeline is full, so a very long one ends
// at the time of a shorter one plus as many periods.
SimulationResult Evaluator::simulated(const ParallelPlan& plan, const PipelineTimes& times) {
  const std::int64_t m = plan.micro_batches(training_.global_batch);
  const std::int64_t shown = simulated_micro_batches(plan);
  SimulationResult result = simulate(program_of(plan, shown), times, scratch_);
  if (shown == m) return result;
  const SimulationResult shorter = simulate(program_of(plan, shown - plan.pp), times, scratch_);
  const std::int64_t whole_periods = (m - shown) / plan.pp;
  const auto periods = static_cast<double>(whole_periods);
  Seconds least;  // a split backward's period may waver, but never below the busiest rank's work
  for (int r = 0; splits_backward(plan.schedule) && r < plan.pp; ++r)
    least = max(least, plan.pp * busy_of(times, plan, r));
  const auto extend = [periods, least](Seconds& longer, Seconds before) {
    longer += periods * max(longer - before, least);
  };
  extend(result.makespan, shorter.makespan);
  for (std::size_t r = 0; r < result.finish.size(); ++r) {
    extend(result.finish[r], shorter.finish[r]);
    extend(result.last_backward_start[r], shorter.last_backward_start[r]);
  }
  return result;
}

void Evaluator::train_on(std::int64_t global_batch) {
  model_flops_ = model_flops_ *
                 (static_cast<double>(global_batch) / static_cast<double>(training_.global_batch));
  training_.global_batch = global_batch;
  for (Evaluator& part : parts_) part.train_on(global_batch);
}

Seconds Evaluator::iteration_time(const ParallelPlan& plan) { return end_of(plan).iteration; }

Ending Evaluator::end_of(const ParallelPlan& plan) {
  const PlanCost& c = cost(plan);
  return ending(c, simulated(plan, c.times), end_terms(plan));
}

EndTerms Evaluator::end_terms(const ParallelPlan& plan) const {
  return {training_.stack.iteration_host, straggler_factor(cluster_),
          ends_apart(plan.schedule, training_.stack)};
}

Timeline Evaluator::timeline(const ParallelPlan& plan) {
  if (!plan.replica_groups.empty()) return timeline_of_replicas(plan);
  const PlanCost& c = cost(plan);
  const std::int64_t actions =
      (splits_backward(plan.schedule) ? 3 : 2) * c.micro_batches * plan.virtual_stages();
  if (actions > most_drawn_actions) {
    throw ConfigError({}, fmt::format("the timeline has {} actions", format_integer(actions)),
                      fmt::format("at most {} are drawn: lower training.global_batch",
                                  format_integer(most_drawn_actions)));
  }
  Timeline timeline = simulate_timeline(program_of(plan, c.micro_batches), c.times);
  const SimulationResult run = simulated(plan, c.times);
  const EndTerms terms = end_terms(plan);
  const Ending end = ending(c, run, terms);
  for (std::size_t r = 0; r < run.finish.size(); ++r) {
    const int rank = static_cast<int>(r);
    const Seconds meeting = terms.apart ? reduced(run.finish[r], c, r) : end.meeting;
    if (c.gradient_exposed[r].value > 0) {
      timeline.events.push_back({rank, Stream::data_parallel, "gradient reduction", run.finish[r],
                                 run.finish[r] + c.gradient_exposed[r]});
    }
    timeline.events.push_back(
        {rank, Stream::optimizer, "optimizer step", meeting, meeting + c.optimizer[r]});
    if (c.gather_exposed[r].value > 0) {
      const Seconds from = meeting + (terms.apart ? c.optimizer[r] : end.optimizer);
      timeline.events.push_back(
          {rank, Stream::data_parallel, "parameter gather", from, from + c.gather_exposed[r]});
    }
  }
  const Seconds start = terms.apart ? run.begin[end.critical] : Seconds(0);
  const Seconds rest = start + end.meeting + end.optimizer + end.gather;
  if (start + end.iteration > rest) {
    timeline.events.push_back({static_cast<int>(end.critical), Stream::optimizer,
                               "host and stragglers", rest, start + end.iteration});
  }
  std::stable_sort(timeline.events.begin(), timeline.events.end(),
                   [](const Event& a, const Event& b) { return a.rank < b.rank; });
  return timeline;
}

namespace {

void set_memory(const PlanCost& c, const DeviceSpec& device, const StackSpec& stack, Estimate& e) {
  e.memory = c.memory;
  e.peak = c.peak;
  e.fullest = c.fullest;
  e.reported_peak = reported_peak(c.peak, stack);
  e.capacity = c.capacity.empty() ? device.memory : c.capacity[c.fullest];
  e.stage_capacity = c.capacity;
}

}  // namespace

Estimate Evaluator::estimate(const ParallelPlan& plan) {
  if (!plan.replica_groups.empty()) return estimate_replicas(plan);
  const PlanCost& c = cost(plan);
  const SimulationResult run = simulated(plan, c.times);
  const EndTerms terms = end_terms(plan);
  const Ending end = ending(c, run, terms);
  const auto own_end = [&](const SimulationResult& result) {
    return result.finish[end.critical] - (terms.apart ? result.begin[end.critical] : Seconds(0));
  };
  Seconds transfers;
  if (c.times.transfer.value > 0) {
    PipelineTimes still = c.times;
    still.transfer = Seconds(0);
    still.forward_transfer.clear();
    still.backward_transfer.clear();
    transfers = own_end(run) - own_end(simulated(plan, still));
  }
  Estimate e;
  e.plan = plan;
  e.micro_batches = c.micro_batches;
  e.iteration = end.iteration;
  e.interval = {end.iteration * training_.error_band.low,
                end.iteration * training_.error_band.high};
  e.critical_rank = static_cast<int>(end.critical);
  const auto m = static_cast<double>(c.micro_batches);
  Seconds slowest;
  for (int r = 0; r < plan.pp; ++r) slowest = max(slowest, m * busy_of(c.times, plan, r));
  const Seconds own = m * busy_of(c.times, plan, e.critical_rank);
  e.breakdown = breakdown_of(c, plan, end, {transfers, slowest - own}, training_.stack);
  e.stage_backward = whole_backward(c.times);
  e.pipeline = pipeline_of(run, terms.apart);
  e.bubble_fraction = bubble_fraction(e.pipeline, slowest);
  e.stage_forward = c.times.forward;
  set_memory(c, cluster_.device, training_.stack, e);
  if (by_stage(plan, cluster_)) e.meshes = stage_meshes(plan, cluster_);
  const ParallelPlan real = as_run(plan);
  const auto of_rank = [&](std::size_t r) {
    return e.meshes.empty() ? real : as_run(e.meshes[r].plan);
  };
  for (std::size_t r = 0; r < c.weights.size(); ++r) {
    const Traffic& sent =
        e.rank_traffic.emplace_back(rank_traffic(c, of_rank(r), training_, model_, r));
    if (sent.total() > e.traffic.total()) e.traffic = sent;
  }
  e.parameters = parameter_count(model_);
  e.active_parameters = active_parameter_count(model_);
  e.model_flops = model_flops_.full;
  e.causal_model_flops = model_flops_.causal;
  Flops again;
  for (const Cost& cost : c.recompute) again += cost.model;
  e.hardware_flops = model_flops_.full + again * (m * plan.replicas() * plan.tp);
  if (!e.meshes.empty()) {
    e.hardware_flops = model_flops_.full;
    for (std::size_t k = 0; k < e.meshes.size(); ++k)
      e.hardware_flops += c.recompute[k].model * (m * static_cast<double>(e.meshes[k].devices));
  }
  set_throughput(cluster_, training_, e);
  e.notes = notes();
  return e;
}

}  // namespace costmodel
