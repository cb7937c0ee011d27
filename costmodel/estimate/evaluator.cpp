#include "costmodel/estimate/evaluator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "costmodel/base/error.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/estimate/breakdown.hpp"
#include "costmodel/estimate/memory.hpp"
#include "costmodel/estimate/pipelines_together.hpp"
#include "costmodel/estimate/plan_inputs.hpp"
#include "costmodel/estimate/unlike_stages.hpp"
#include "costmodel/model/parameter_count.hpp"
#include "costmodel/plan/plan_schedule.hpp"
#include "costmodel/plan/trained_parameters.hpp"
#include "costmodel/schedule/closed_form.hpp"

namespace costmodel {

Evaluator::Evaluator(ModelSpec model, ClusterSpec cluster, TrainingSpec training)
    : on_{std::move(model), std::move(cluster), std::move(training)},
      parameters_{parameter_count(on_.model), active_parameter_count(on_.model),
                  trained_parameters(on_.model, on_.training.fine_tuning),
                  on_.training.fine_tuning.adapts() ? 0 : mtp_parameter_count(on_.model)} {
  const ParallelPlan one;
  const LayerMix all = layer_mix(on_.model, 0, static_cast<int>(on_.model.layers), {});
  // Tokens take as many experts wherever these lie; what pads them is executed, not the model's.
  const Workload even = on_.model.experts > 0 ? with_mean_load(on_) : Workload{};
  const auto add = [&](LayerKind kind, int count) {
    const LayerKind mask = on_.model.causal && !kind.of_tower() ? kind : LayerKind::encoder;
    const auto flops = [&](const Workload& on) {
      return costmodel::model_flops(build_layer(kind, on.model, context_of(one, on)), mask) *
             (static_cast<double>(count) * static_cast<double>(on_.training.global_batch));
    };
    ModelFlops own = flops(on_.model.experts > 0 ? even : on_);
    if (on_.model.experts > 0 && is_padded(on_.training)) own.executed = flops(on_).executed;
    model_flops_ += own;
  };
  for (const LayerCount& own : layer_counts_of(on_.model, all)) add(own.kind, own.number);
  for (const TowerLayers& own : tower_layers(on_.model)) add(own.kind, own.number);
  const auto more = static_cast<int>(on_.model.mtp_layers);
  add(LayerKind::head, 1 + more);
  if (more == 0) return;
  add(LayerKind::mtp_start, more);
  add(mtp_layer(on_.model), more);
}

namespace {

std::shared_ptr<const AlikeStages> alike(const std::vector<LayerMix>& stages,
                                         const ParallelPlan& plan) {
  return std::make_shared<const AlikeStages>(alike_stages(stages, plan));
}

bool runs_as_requested(const ParallelPlan& plan, const StackSpec& stack) {
  return recompute_as_run(plan.recompute, stack.memory) == plan.recompute &&
         !(stack.zero.whole_in_pipeline && plan.pp > 1 && plan.zero > 1);
}

}  // namespace

ParallelPlan Evaluator::as_run(const ParallelPlan& requested) const {
  return plan_as_run(requested, on_.training.stack);
}

Pricing Evaluator::pricing(const ParallelPlan& plan) const { return pricing_of(plan, on_); }

OpList Evaluator::op_list(LayerKind kind, const ParallelPlan& plan) const {
  return build_layer(kind, on_.model, context_of(plan, on_));
}

const LayerCost& Evaluator::layer(LayerKind kind, const ParallelPlan& plan, Recomputed what) {
  return cache_.layer(kind, plan, what, on_);
}

const PlanCost& Evaluator::cost(const ParallelPlan& plan) {
  SHARDPLAN_CHECK(plan.replica_groups.empty());
  if (by_stage(plan, on_.cluster)) return cost_by_stage(plan);
  if (runs_as_requested(plan, on_.training.stack)) {
    return cost_ = plan_cost(plan_inputs(on_, plan, cache_.stages(plan, on_.model), cache_),
                             std::move(cost_));
  }
  const ParallelPlan real = as_run(plan);
  return cost_ = plan_cost(plan_inputs(on_, real, cache_.stages(real, on_.model), cache_),
                           std::move(cost_));
}

const PlanCost& Evaluator::cost(const ParallelPlan& plan, const std::vector<LayerMix>& stages) {
  SHARDPLAN_CHECK(stages.size() == static_cast<std::size_t>(plan.virtual_stages()));
  const ParallelPlan real = as_run(plan);
  return cost_ = plan_cost(plan_inputs(on_, real, alike(stages, real), cache_), std::move(cost_));
}

// Stages with identical sharding on the same kind of device are priced together.
const PlanCost& Evaluator::cost_by_stage(const ParallelPlan& plan) {
  const std::vector<StageMesh> meshes = stage_meshes(plan, on_.cluster);
  if (parts_.empty()) {
    for (const ClusterSpec& group : groups_of(on_.cluster))
      parts_.emplace_back(on_.model, group, on_.training);
  }
  const std::vector<LayerMix> mixes = unlike_mixes(meshes, on_);
  std::vector<StagePrice> prices(meshes.size());
  std::vector<char> priced(meshes.size(), 0);
  for (std::size_t k = 0; k < meshes.size(); ++k) {
    if (priced[k] != 0) continue;
    const PlanCost& own =
        parts_[static_cast<std::size_t>(meshes[k].group)].cost(meshes[k].plan, mixes);
    for (std::size_t like = k; like < meshes.size(); ++like) {
      if (meshes[like].group != meshes[k].group || meshes[like].plan != meshes[k].plan) continue;
      prices[like] = stage_price(own, like);
      priced[like] = 1;
    }
  }
  return cost_ = cost_of_unlike(plan, meshes, mixes, prices, on_);
}

namespace {

bool needs_own_program(const ParallelPlan& plan) {
  return splits_backward(plan.schedule) || plan.listed != nullptr;
}

}  // namespace

// A schedule with split backward is generated for the times of the last call of cost().
const SimulationProgram& Evaluator::program_of(const ParallelPlan& plan, std::int64_t m) {
  if (needs_own_program(plan)) {
    split_program_ = compile(schedule_of(plan, m, cost_.times, cost_.shares));
    return split_program_;
  }
  return cache_.program(plan, m);
}

namespace {

// Micro-batches after which a schedule repeats.
std::int64_t period_of(const ParallelPlan& plan) {
  return plan.choices.group > 0 ? plan.choices.group : plan.pp;
}

// Micro-batches to simulate: all, or enough that the schedule has long been periodic, congruent to
// m modulo p.
std::int64_t simulated_micro_batches(const ParallelPlan& plan, std::int64_t m) {
  if (plan.listed != nullptr) return m;
  const std::int64_t p = period_of(plan);
  // A schedule with split backward is generated for every plan, so a shorter one is simulated.
  const std::int64_t most =
      splits_backward(plan.schedule) ? most_simulated_actions / 8 : most_simulated_actions;
  const std::int64_t enough =
      std::max(8 * p, most / (std::int64_t{2} * plan.pp * plan.vpp) / p * p);
  return m <= enough + p ? m : enough + m % p;
}

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

// The time of all micro-batches on a rank.
Seconds work_of(const PipelineTimes& times, const ParallelPlan& plan, int rank, std::int64_t m) {
  return overlaps(plan.schedule) ? joined_work(plan.schedule, plan.pp, m, times, rank)
                                 : static_cast<double>(m) * busy_of(times, plan, rank);
}

}  // namespace

SimulationResult Evaluator::simulated(const ParallelPlan& plan, std::int64_t m,
                                      const PipelineTimes& times) {
  if (needs_own_program(plan)) return simulate(program_of(plan, m), times, scratch_);
  return cache_.simulated(plan, m, times);
}

namespace {

// Whether a plan's memory is priced by the limit for which its schedule is generated.
bool held_by_limit(const ParallelPlan& plan, const ClusterSpec& cluster) {
  return splits_backward(plan.schedule) && plan.listed == nullptr &&
         row_of(plan.schedule).held_limit != nullptr && !by_stage(plan, cluster);
}

}  // namespace

// A schedule repeats with every p micro-batches once its pipeline is full, so a very long one ends
// at the time of a shorter one plus as many periods.
SimulationResult Evaluator::simulated(const ParallelPlan& plan, const PipelineTimes& times) {
  const std::int64_t m = plan.micro_batches(on_.training.global_batch);
  const std::int64_t shown = simulated_micro_batches(plan, m);
  SimulationResult result = simulated(plan, shown, times);
  if (shown == m) return result;
  const std::int64_t period = period_of(plan);
  const SimulationResult shorter = simulated(plan, shown - period, times);
  const std::int64_t whole_periods = (m - shown) / period;
  const auto periods = static_cast<double>(whole_periods);
  Seconds least;  // a split backward's period may waver, but never below the busiest rank's work
  for (int r = 0; splits_backward(plan.schedule) && r < plan.pp; ++r) {
    least = max(least, overlaps(plan.schedule)
                           ? work_of(times, plan, r, m + period) - work_of(times, plan, r, m)
                           : plan.pp * busy_of(times, plan, r));
  }
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
  model_flops_ = model_flops_ * (static_cast<double>(global_batch) /
                                 static_cast<double>(on_.training.global_batch));
  on_.training.global_batch = global_batch;
  for (Evaluator& part : parts_) part.train_on(global_batch);
}

std::int64_t Evaluator::simulated_actions(const ParallelPlan& plan) const {
  const std::int64_t m = plan.micro_batches(on_.training.global_batch);
  return 2 * simulated_micro_batches(plan, m) * plan.virtual_stages();
}

Seconds Evaluator::iteration_time(const ParallelPlan& plan) { return end_of(plan).iteration; }

Ending Evaluator::end_of(const ParallelPlan& plan) {
  const PlanCost& c = cost(plan);
  return ending(c, simulated(plan, c.times), end_terms(plan, on_));
}

Estimate Evaluator::estimate(const ParallelPlan& plan) { return estimate_together(plan, *this); }

Timeline Evaluator::timeline(const ParallelPlan& plan) { return timeline_together(plan, *this); }

PipelineTimeline Evaluator::timeline_alone(const ParallelPlan& plan) {
  const PlanCost& c = cost(plan);
  const std::int64_t actions =
      (splits_backward(plan.schedule) ? 3 : 2) * c.micro_batches * plan.virtual_stages();
  if (actions > most_drawn_actions) {
    throw ConfigError({}, fmt::format("the timeline has {} actions", format_integer(actions)),
                      fmt::format("at most {} are drawn: lower training.global_batch",
                                  format_integer(most_drawn_actions)));
  }
  PipelineTimeline alone;
  alone.timeline = simulate_timeline(program_of(plan, c.micro_batches), c.times);
  if (by_stage(plan, on_.cluster)) {
    alone.timeline.memory = memory_over_time(c.ranks);
  } else {
    const ParallelPlan real = as_run(plan);
    alone.timeline.memory =
        memory_over_time(plan_inputs(on_, real, cache_.stages(real, on_.model), cache_), c);
  }
  const SimulationResult run = simulated(plan, c.times);
  const EndTerms terms = end_terms(plan, on_);
  alone.end = ending(c, run, terms);
  alone.apart = terms.apart;
  for (std::size_t r = 0; r < run.finish.size(); ++r) {
    const Seconds exposed = c.ranks[r].after.gradient_exposed;
    if (exposed.value > 0) {
      alone.timeline.events.push_back({static_cast<int>(r), Stream::data_parallel,
                                       "gradient reduction", run.finish[r],
                                       run.finish[r] + exposed});
    }
    alone.reduced.push_back(reduced(run.finish[r], c, r));
    alone.after.push_back(c.ranks[r].after);
  }
  return alone;
}

PeakPlace Evaluator::peak_place(const Estimate& estimate) {
  const ParallelPlan& plan = estimate.plan;
  PeakPlace place;
  place.stage = static_cast<int>(estimate.fullest);
  if (!plan.replica_groups.empty() || by_stage(plan, on_.cluster)) return place;
  const PlanCost& c = cost(plan);
  if (held_by_limit(plan, on_.cluster)) cost_.fullest = estimate.fullest;
  const ParallelPlan real = as_run(plan);
  return costmodel::peak_place(plan_inputs(on_, real, cache_.stages(real, on_.model), cache_), c);
}

MemoryTrace Evaluator::memory_trace(const ParallelPlan& plan) {
  if (!plan.replica_groups.empty() || by_stage(plan, on_.cluster)) return {};
  const PlanCost& c = cost(plan);
  const ParallelPlan real = as_run(plan);
  return costmodel::memory_trace(plan_inputs(on_, real, cache_.stages(real, on_.model), cache_), c);
}

CountedPeak Evaluator::counted_by_stack(const Estimate& e) const {
  const StackMemory& stack = on_.training.stack.memory;
  return costmodel::counted_peak(e.peak, stack, workspaces(on_.model, on_.cluster.device, stack));
}

namespace {

// What the allocator counts beyond what is asked for: blocks that it does not split.
Bytes rounding(const MemorySample& at) {
  Bytes asked;
  for (const Bytes held : at.held) asked += held;
  return at.allocated - asked;
}

}  // namespace

CountedPeak Evaluator::counted_peak(const Estimate& e) {
  const StackMemory& stack = on_.training.stack.memory;
  CountedPeak counted = counted_by_stack(e);
  const MemoryTrace trace = memory_trace(e.plan);
  if (!trace.known()) return counted;
  // XLA plans its buffers; PyTorch's allocator, which has workspaces, does not split every block.
  if (stack.workspaces > 0) counted.allocated += rounding(trace.samples[trace.peak]);
  // Before it fails, the allocator gives back what it had only cached.
  const Bytes rest = stack.context - workspaces(on_.model, on_.cluster.device, stack),
              most = max(e.capacity - rest, counted.allocated);
  const Bytes wanted = max(trace.reserved, counted.allocated);
  if (e.peak > e.capacity) return {counted.allocated, wanted, wanted};
  return {counted.allocated, min(wanted, most), wanted};
}

Bytes Evaluator::reported_peak(const Estimate& e) {
  const StackMemory& stack = on_.training.stack.memory;
  switch (stack.reported) {
    case ReportedMemory::device: return e.peak;
    case ReportedMemory::allocated: return counted_peak(e).allocated;
    case ReportedMemory::reserved: return counted_peak(e).reserved;
  }
  return e.peak;
}

namespace {

void set_memory(const PlanCost& c, const ClusterSpec& cluster, Estimate& e) {
  for (const RankRow& rank : c.ranks) {
    StageMemory& own = e.memory.emplace_back(rank.memory);
    if (!own.peaks_in_step()) continue;
    own.gradients += own.widened;  // at the peak
    own.activations = own.widened = Bytes(0);
  }
  e.peak = c.peak;
  e.fullest = c.fullest;
  e.capacity = c.capacity.empty() ? cluster.device.memory : c.capacity[c.fullest];
  e.stage_capacity = c.capacity;
  e.host = c.host;
  e.host_capacity = cluster.host_memory;
  e.drives = c.drives;
  e.drive_capacity = cluster.drives.size;
}

// Of an iteration, on all devices.
Flops recomputed_flops(const PlanCost& c, const ParallelPlan& plan,
                       const std::vector<StageMesh>& meshes) {
  const auto m = static_cast<double>(c.micro_batches);
  Flops again;
  for (std::size_t k = 0; k < c.stages.size(); ++k) {
    const double devices = meshes.empty() ? 1 : static_cast<double>(meshes[k].devices);
    again += c.stages[k].recompute.executed * (m * devices);
  }
  return meshes.empty() ? again * plan.dp * plan.cp * plan.tp : again;
}

// Of what a device keeps of its rank's gradients after the reduction over the replicas.
Bytes shard_of_gradients(const RankWeights& held, const ParallelPlan& plan,
                         const TrainingSpec& training) {
  return Bytes(sharded(held.all, held.experts, plan) * gradient_bytes_per_parameter(training));
}

}  // namespace

// The cost is that of the fullest expert-parallel rank; all ranks together have the mean's rows.
Flops Evaluator::recomputed_at_mean(const PlanCost& fullest, const ParallelPlan& plan,
                                    const std::vector<StageMesh>& meshes) const {
  const bool even = is_padded(on_.training) || fullest_load(plan, on_.training) == 1;
  if (on_.model.experts == 0 || even) return recomputed_flops(fullest, plan, meshes);
  Workload on = with_mean_load(on_);
  Evaluator mean(std::move(on.model), std::move(on.cluster), std::move(on.training));
  return recomputed_flops(mean.cost(plan), plan, meshes);
}

const PlanCost& Evaluator::cost_within(const ParallelPlan& plan, Bytes memory) {
  const PlanCost& c = cost(plan);
  if (c.peak <= memory || !c.in_host || !held_by_limit(plan, on_.cluster)) return c;
  const ParallelPlan real = as_run(plan);
  const std::int64_t shown = simulated_micro_batches(plan, c.micro_batches);
  follow_order(plan_inputs(on_, real, cache_.stages(real, on_.model), cache_),
               schedule_of(plan, shown, c.times, c.shares), cost_);
  return c;
}

PipelineEstimate Evaluator::estimate_alone(const ParallelPlan& plan) {
  const PlanCost& c = cost_within(plan, Bytes(0));
  const SimulationResult run = simulated(plan, c.times);
  const EndTerms terms = end_terms(plan, on_);
  const Ending end = ending(c, run, terms);
  Seconds transfers;
  if (c.times.transfer.value > 0) {
    PipelineTimes still = c.times;
    still.transfer = Seconds(0);
    still.forward_transfer.clear();
    still.backward_transfer.clear();
    const SimulationResult without = simulated(plan, still);
    const auto own_end = [&](const SimulationResult& result) {
      return result.finish[end.critical] - (terms.apart ? result.begin[end.critical] : Seconds(0));
    };
    transfers = own_end(run) - own_end(without);
  }
  PipelineEstimate alone{{}, end, c.offload, {}};
  Estimate& e = alone.estimate;
  e.micro_batches = c.micro_batches;
  Seconds slowest;
  for (int r = 0; r < plan.pp; ++r)
    slowest = max(slowest, work_of(c.times, plan, r, c.micro_batches));
  const Seconds own = work_of(c.times, plan, static_cast<int>(end.critical), c.micro_batches);
  e.breakdown = breakdown_of(c, plan, end, {transfers, slowest - own}, on_.training.stack.host);
  if (on_.training.packing.packed) {
    e.longest_samples = micro_batch_parts(c, plan, end.critical, on_.training.stack.host).imbalance;
  }
  e.stage_backward = whole_backward(c.times);
  e.pipeline = pipeline_of(run, terms.apart);
  e.bubble_fraction = bubble_fraction(e.pipeline, slowest);
  e.stage_forward = c.times.forward;
  set_memory(c, on_.cluster, e);
  if (by_stage(plan, on_.cluster)) e.meshes = stage_meshes(plan, on_.cluster);
  const ParallelPlan real = as_run(plan);
  for (std::size_t r = 0; r < c.ranks.size(); ++r) {
    const ParallelPlan of_rank = e.meshes.empty() ? real : as_run(e.meshes[r].plan);
    e.rank_traffic.push_back(rank_traffic(c, of_rank, on_, r));
    alone.gradients.push_back(shard_of_gradients(c.ranks[r].weights, of_rank, on_.training));
  }
  e.model_flops = model_flops_.full;
  e.causal_model_flops = model_flops_.causal;
  e.hardware_flops = model_flops_.executed + recomputed_at_mean(c, plan, e.meshes);
  return alone;
}

}  // namespace costmodel
