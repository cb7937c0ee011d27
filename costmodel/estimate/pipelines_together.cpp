#include "costmodel/estimate/pipelines_together.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "costmodel/cost/collective.hpp"
#include "costmodel/estimate/breakdown.hpp"
#include "costmodel/estimate/notes.hpp"
#include "costmodel/machine/cluster_groups.hpp"
#include "costmodel/plan/trained_parameters.hpp"

namespace costmodel {

Seconds sum_across(const ModelSpec& model, const ClusterSpec& cluster,
                   const TrainingSpec& training) {
  const auto all = groups_of(cluster);
  if (all.size() == 1) return {};
  const auto groups = static_cast<double>(all.size());
  const Bytes gradients(trained_parameters(model, training.fine_tuning) *
                        gradient_bytes_per_parameter(training));
  Seconds slowest;
  for (const ClusterSpec& group : all) {
    const Bytes step = gradients / (groups * static_cast<double>(group.devices));
    slowest = max(slowest, transfer_time(step, 1, group.devices, joined_view(cluster, group)));
  }
  return 2 * (groups - 1) * slowest;
}

PlacedPipelines::PlacedPipelines(const ParallelPlan& plan, Evaluator& whole)
    : terms_(end_terms(plan, whole.workload())) {
  for (Pipeline& pipeline : pipelines_of(plan, whole.training().global_batch)) {
    Evaluator* evaluator = &whole;
    if (pipeline.on) {
      evaluator = &of_groups_.emplace_back(whole.model(), cluster_of(pipeline, whole.cluster()),
                                           whole.training());
      evaluator->train_on(pipeline.sequences());
    }
    all_.push_back({std::move(pipeline), evaluator});
  }
  if (all_.size() > 1) across_ = sum_across(whole.model(), whole.cluster(), whole.training());
}

TogetherEnd PlacedPipelines::together(std::span<const Ending> alone) const {
  TogetherEnd all;
  for (std::size_t i = 1; i < alone.size(); ++i)
    if (alone[i].meeting > alone[all.last].meeting) all.last = i;
  all.end = alone[all.last];
  all.end.meeting += across_;
  all.end.critical += static_cast<std::size_t>(all_[all.last].pipeline.first_stage);
  for (const Ending& one : alone) {
    all.end.optimizer = max(all.end.optimizer, one.optimizer);
    all.end.gather = max(all.end.gather, one.gather);
  }
  all.end = ended(all.end, terms_);
  return all;
}

namespace {

template <class T>
void append(std::vector<T>& to, const std::vector<T>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

// The stages of a pipeline on a group, as places in the cluster.
void place_on_group(const Pipeline& pipeline, Estimate& own) {
  const std::int64_t each = std::int64_t{pipeline.plan.tp} * pipeline.plan.cp * pipeline.plan.dp;
  for (int k = 0; k < pipeline.plan.pp; ++k) {
    own.stage_capacity.push_back(own.capacity);
    own.meshes.push_back(
        {pipeline.plan, static_cast<int>(*pipeline.on), pipeline.group, k * each, each});
  }
}

// Appends a pipeline's ranks to those of the pipelines before.
void add_stages(const Estimate& own, const Pipeline& pipeline, Estimate& all) {
  append(all.stage_forward, own.stage_forward);
  append(all.stage_backward, own.stage_backward);
  append(all.memory, own.memory);
  append(all.stage_capacity, own.stage_capacity);
  append(all.meshes, own.meshes);
  append(all.rank_traffic, own.rank_traffic);
  if (all.capacity.value == 0 || own.peak / own.capacity > all.peak / all.capacity) {
    all.peak = own.peak;
    all.capacity = own.capacity;
    all.fullest = static_cast<std::size_t>(pipeline.first_stage) + own.fullest;
  }
  if (own.host >= all.host) {
    all.host = own.host;
    all.host_capacity = own.host_capacity;
    all.drives = own.drives;
    all.drive_capacity = own.drive_capacity;
  }
  all.micro_batches = std::max(all.micro_batches, own.micro_batches);
  all.model_flops += own.model_flops;
  all.causal_model_flops += own.causal_model_flops;
  all.hardware_flops += own.hardware_flops;
}

// What the devices of a pipeline send after its own reduction: a ring over all pipelines, with the
// shard that each device has.
void add_ring(std::size_t pipelines, PipelineEstimate& alone) {
  for (std::size_t r = 0; r < alone.gradients.size(); ++r) {
    alone.estimate.rank_traffic[r].add(
        CollectiveKind::all_reduce, collective_bytes(CollectiveKind::all_reduce, alone.gradients[r],
                                                     static_cast<int>(pipelines)));
  }
}

// How much longer than its own a time of all is; 0 where both are infinite.
Seconds longer(Seconds all, Seconds own) { return all > own ? all - own : Seconds(0); }

// Stretches all times before the end, so that they add up to the iteration again.
void stretch(double factor, Estimate& e) {
  if (factor == 1) return;
  e.breakdown *= factor;
  e.longest_samples = e.longest_samples * factor;
  e.pipeline = e.pipeline * factor;
  for (auto* times : {&e.stage_forward, &e.stage_backward})
    for (Seconds& time : *times) time = time * factor;
}

// What the end of all adds to an iteration of the last pipeline.
void add_waiting(const Ending& own, const Ending& all, Seconds across, Breakdown& b) {
  b.dp_comm += across + longer(all.gather, own.gather);
  b.optimizer = all.optimizer;
  b.other += longer(all.waiting, own.waiting);
}

}  // namespace

Estimate estimate_together(const ParallelPlan& plan, Evaluator& whole) {
  const PlacedPipelines pipelines(plan, whole);
  const TrainingSpec& training = whole.training();
  std::vector<PipelineEstimate> alone;
  std::vector<Ending> ends;
  for (const PlacedPipeline& one : pipelines) {
    alone.push_back(one.evaluator->estimate_alone(one.pipeline.plan));
    ends.push_back(alone.back().end);
  }
  const TogetherEnd all = pipelines.together(ends);
  Estimate e;
  e.plan = plan;
  e.breakdown = alone[all.last].estimate.breakdown;
  e.longest_samples = alone[all.last].estimate.longest_samples;
  e.pipeline = alone[all.last].estimate.pipeline;
  e.bubble_fraction = alone[all.last].estimate.bubble_fraction;
  add_waiting(ends[all.last], all.end, pipelines.across(), e.breakdown);
  Offload offload;  // where most layers have it, or its transfers show most
  for (std::size_t i = 0; i < pipelines.size(); ++i) {
    const Pipeline& pipeline = pipelines[i].pipeline;
    const Offload& own = alone[i].offload;
    if (own.layers > offload.layers || own.exposed() > offload.exposed()) offload = own;
    add_ring(pipelines.size(), alone[i]);
    if (pipeline.on) place_on_group(pipeline, alone[i].estimate);
    add_stages(alone[i].estimate, pipeline, e);
  }
  stretch(all.end.own_runs, e);
  e.critical_rank = static_cast<int>(all.end.critical);
  e.iteration = all.end.iteration;
  e.interval = {e.iteration * training.error_band.low, e.iteration * training.error_band.high};
  for (const Traffic& sent : e.rank_traffic)
    if (sent.total() > e.traffic.total()) e.traffic = sent;
  const auto& counted = whole.parameters();
  e.parameters = counted.all;
  e.active_parameters = counted.active;
  e.trained_parameters = counted.trained;
  e.mtp_parameters = counted.mtp;
  set_throughput(whole.cluster(), training, e);
  e.notes = notes_of(whole.workload(), plan, offload);
  e.unknown = training.error_band.unknown;
  for (const auto feature : names_of(features_of(plan) & training.error_band.unmeasured)) {
    const char* kind = whole.model().experts > 0 ? "of experts " : "";
    e.unknown.push_back(fmt::format("{}with {}", kind, feature));
  }
  return e;
}

namespace {

// What follows a pipeline's reduction: each rank's optimizer step and gather, which wait for all
// unless ranks end apart.
void add_steps(const PipelineTimeline& alone, const Ending& all, int first_stage, Timeline& to) {
  for (std::size_t r = 0; r < alone.after.size(); ++r) {
    const int rank = first_stage + static_cast<int>(r);
    const AfterPipeline& after = alone.after[r];
    const Seconds meeting = alone.apart ? alone.reduced[r] : all.meeting;
    to.events.push_back(
        {rank, Stream::optimizer, "optimizer step", meeting, meeting + after.optimizer});
    if (after.gather_exposed.value > 0) {
      const Seconds from = meeting + (alone.apart ? after.optimizer : all.optimizer);
      to.events.push_back(
          {rank, Stream::data_parallel, "parameter gather", from, from + after.gather_exposed});
    }
  }
}

}  // namespace

Timeline timeline_together(const ParallelPlan& plan, Evaluator& whole) {
  const PlacedPipelines pipelines(plan, whole);
  std::vector<PipelineTimeline> alone;
  std::vector<Ending> ends;
  for (const PlacedPipeline& one : pipelines) {
    alone.push_back(one.evaluator->timeline_alone(one.pipeline.plan));
    ends.push_back(alone.back().end);
  }
  const TogetherEnd met = pipelines.together(ends);
  const Ending& end = met.end;
  Timeline all{plan.pp, {}};
  for (std::size_t i = 0; i < pipelines.size(); ++i) {
    const int first_stage = pipelines[i].pipeline.first_stage;
    for (Event& event : alone[i].timeline.events) {
      event.rank += first_stage;
      all.events.push_back(std::move(event));
    }
    append(all.memory, alone[i].timeline.memory);
    add_steps(alone[i], end, first_stage, all);
  }
  for (int r = 0; r < plan.pp && pipelines.across().value > 0; ++r) {
    all.events.push_back({r, Stream::data_parallel, "gradient sum over groups",
                          ends[met.last].meeting, end.meeting});
  }
  const Seconds rest = end.begin + end.meeting + end.optimizer + end.gather;
  const Seconds last = end.begin + end.iteration / end.own_runs;
  if (last > rest) {
    all.events.push_back(
        {static_cast<int>(end.critical), Stream::optimizer, "host and stragglers", rest, last});
  }
  if (end.own_runs != 1) {
    for (Event& event : all.events) {
      event.start = event.start * end.own_runs;
      event.end = event.end * end.own_runs;
    }
  }
  std::ranges::stable_sort(all.events,
                           [](const Event& a, const Event& b) { return a.rank < b.rank; });
  return all;
}

}  // namespace costmodel
