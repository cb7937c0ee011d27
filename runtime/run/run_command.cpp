#include "runtime/run/run_command.hpp"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "costmodel/base/error.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/estimate/plan_inputs.hpp"
#include "costmodel/plan/pipeline.hpp"
#include "costmodel/plan/plan_text.hpp"
#include "runtime/devices/graph_rules.hpp"
#include "runtime/devices/graphed_device.hpp"
#include "runtime/devices/paced_device.hpp"
#include "runtime/ranks/tensor_route.hpp"
#include "runtime/run/agreement.hpp"
#include "runtime/run/comparison.hpp"
#include "runtime/run/compute_backend.hpp"
#include "runtime/run/early_end.hpp"
#include "runtime/run/supported.hpp"
#include "runtime/training/training_run.hpp"

namespace runtime {

using namespace costmodel;

namespace {

void require_supported(const Scenario& s, const ParallelPlan& plan) {
  const auto faults = unsupported(s.model, s.training, plan);
  if (faults.empty()) return;
  throw ConfigError(s.plan.mark_of(faults.front().key), faults.front().reason,
                    faults.front().remedy);
}

// Before the run: does not predict replayed launches that the backend cannot replay.
void replay_as_can_be(const RunRequest& request, TrainingSpec& t, std::vector<std::string>& notes) {
  if (!t.overlap.cuda_graph) return;
  const std::string refused = graphs_refused(
      {.on_gpus = request.backend->devices().on_gpus, .virtual_devices = request.virtual_devices});
  if (refused.empty()) return;
  notes.push_back(refused);
  t.overlap.cuda_graph = false;
}

// Wraps the device to replay launches when the scenario requests it. An iteration has at most as
// many sets of addresses as micro-batches.
std::unique_ptr<GraphedDevice> graphed(Device& device, const RunRequest& request,
                                       const ParallelPlan& plan) {
  const auto& training = request.scenario.training;
  if (!training.overlap.cuda_graph || device.graphs() == nullptr) return nullptr;
  return std::make_unique<GraphedDevice>(
      device, *device.graphs(),
      static_cast<std::size_t>(plan.micro_batches(training.global_batch)));
}

// Whether to measure the core's pace: only when the profile has a yardstick.
bool is_paced(const RunRequest& request) {
  return !request.backend->devices().on_gpus &&
         request.scenario.cluster.device.yardstick > Seconds(0);
}

// Why gradients are not reduced concurrently with the backward although the plan asks for it; ""
// when they are.
std::string not_beside(const Evaluator& evaluator, const ParallelPlan& plan, const TensorWay& way,
                       Transport& transport) {
  const bool can = way.transport != nullptr || !reduces_beside(evaluator.training(), plan) ||
                   transport.beside() != nullptr;
  return can ? ""
             : "gradients are reduced after the backward and not beside it: this MPI lets one "
               "thread call it, and not several (MPI_THREAD_MULTIPLE)";
}

// What rank 0's GPU did meanwhile; stops the gauge.
std::string note_of(GpuGauge& gauge, const RankMeasurement& own, std::int64_t ranks) {
  return fmt::format("{}, arena's peak {}{}", gauge.stop_and_tell(),
                     format_bytes(costmodel::Bytes(static_cast<double>(own.peak))),
                     ranks > 1 ? " (rank 0's GPU)" : "");
}

// Trains one rank; on rank 0 `end` gets all ranks' measurements.
void train_rank(const Evaluator& evaluator, const RunResult& begun, const RunRequest& request,
                Transport& transport, EarlyEnd& end) {
  require_agreement(transport, statements(request, begun.plan), begun.plan.devices(),
                    to_string(begun.plan));
  const ComputeBackend& computes = request.backend->devices();
  const bool speaks = transport.rank() == 0;
  const auto gauge = speaks ? computes.gauge_of(request, transport) : nullptr;
  const std::unique_ptr<Device> device = computes.device_of(request, transport);
  PacedDevice paced(*device);
  std::unique_ptr<GraphedDevice> replaying = graphed(*device, request, begun.plan);
  Device& whole = replaying ? static_cast<Device&>(*replaying) : *device;
  const TensorWay way = computes.way_of_tensors(request, begun.plan, transport, *device, whole);
  const std::string one_by_one =
      replaying
          ? graphs_refused({.on_gpus = true,
                            .reducing_thread = way.transport == nullptr &&
                                               reduces_beside(evaluator.training(), begun.plan) &&
                                               transport.beside() != nullptr})
          : "";
  const std::string alone = not_beside(evaluator, begun.plan, way, transport);
  if (speaks) {
    end.note(way.note);
    end.note(alone);
    end.note(one_by_one);
  }
  TrainingOptions options;
  const bool pace = is_paced(request);
  if (pace)
    options.pace = [&] { return paced.slowdown(request.scenario.cluster.device.yardstick); };
  options.iterations = request.iterations;
  options.executor.fabric = way.transport.get();
  options.executor.seed = request.seed;
  options.executor.memory_limit = request.memory_limit;
  bool first = true;
  options.each = [&](const RankMeasurement& one) {
    auto all = gather_measurements(transport, one);
    if (!all.empty()) end.add(std::move(all));
    if (replaying) replaying->warmed_up();
    if (gauge && first && request.iterations > 1) gauge->restart();  // the first one warms up
    first = false;
  };
  if (speaks) options.progress = request.progress;
  const bool replays = replaying != nullptr && one_by_one.empty();
  if (replays) options.executor.reuse = Reuse::lowest;
  Device& used = pace ? paced : replays ? whole : *device;
  const RankMeasurement own = train(evaluator, begun.plan, transport, used, options);
  if (gauge) end.note(note_of(*gauge, own, begun.plan.devices()));
  if (speaks)
    for (const std::string& note : device->notes()) end.note(note);
  if (replays && speaks) end.note(graphs_note(replaying->counts()));
}

// No model predicts neighbours and clocks: repeats the prediction at the measured pace.
void predict_at_pace(Scenario scenario, RunResult& result) {
  const double pace = result.measured.pace;
  auto& device = scenario.cluster.device;
  if (pace == 0 || device.together.empty()) return;
  const auto ranks = static_cast<double>(ranks_on_a_node(scenario.cluster));
  result.notes.push_back(
      fmt::format("at its pace: operators took {:.2f} times as long as in the "
                  "profile's tables; when it was measured, {:.2f} times",
                  pace, pace_together(device, ranks)));
  device = costmodel::at_pace(device, pace);
  Evaluator evaluator(scenario.model, scenario.cluster, scenario.training);
  result.at_pace = evaluator.estimate(result.plan);
}

}  // namespace

ParallelPlan executed_plan(const Scenario& s) {
  if (!s.plan.automatic.empty()) {
    throw ConfigError(
        s.plan.mark_of(s.plan.automatic.front()),
        fmt::format("plan.{} is auto, and run executes one plan", s.plan.automatic.front()),
        "settle it first: shardplan evaluate SCENARIO --format yaml --out FILE");
  }
  if (s.model.encoder_decoder()) {  // emulated ranks pass on as much at every boundary
    throw ConfigError({s.file, 0, 0}, "run executes no encoder-decoder models",
                      "take a gpt or llama model, or `shardplan simulate` this one");
  }
  ParallelPlan plan = resolve_plan(s);
  for (const Pipeline& pipeline : pipelines_of(plan, s.training.global_batch)) {
    const bool written = !pipeline.plan.even();
    if (!written && groups_of(cluster_of(pipeline, s.cluster)).size() == 1) continue;
    throw ConfigError(s.plan.mark_of("stages"),
                      written ? "run executes stages that are all alike"
                              : "run executes on devices that are all alike",
                      written ? "leave plan.stages out" : "choose a cluster of one kind of device");
  }
  return plan;
}

std::string compute_as_can_be(const Backend& backend, TrainingSpec& t) {
  const Precision precision = backend.computed_in(t.precision);
  const bool wide = precision == Precision::fp32, narrow = is_narrow(precision);
  StackMemory& memory = t.stack.memory;
  const bool as_said =
      t.precision == precision && t.gradient_precision == Precision::fp32 &&
      (wide || (memory.master_weights && !memory.fp32_shards && !memory.bf16_optimizer)) &&
      !(narrow && memory.narrow_saved_inputs);
  if (as_said) return "";
  t.precision = precision;
  t.gradient_precision = Precision::fp32;
  if (!wide) {
    memory.master_weights = true;
    memory.fp32_shards = memory.bf16_optimizer = memory.narrow_saved_inputs = false;
  }
  return fmt::format("computed in {}{}{}, and predicted so; the scenario says otherwise",
                     to_string(precision), wide ? "" : " with fp32 gradients and optimizer weights",
                     narrow ? " and bf16 inputs kept for backward" : "");
}

std::optional<RunResult> train_plan(const RunRequest& asked) {
  RunRequest request = asked;
  const Backend& backend = *request.backend;
  require_start(backend);
  const ComputeBackend& computes = backend.devices();
  RunResult begun;
  begun.backend = backend.name;
  begun.plan = executed_plan(request.scenario);
  begun.iterations = 0;
  require_supported(request.scenario, begun.plan);
  computes.require_plan(request, begun.plan);
  if (auto note = compute_as_can_be(backend, request.scenario.training); !note.empty())
    begun.notes.push_back(std::move(note));
  replay_as_can_be(request, request.scenario.training, begun.notes);
  const Scenario& s = begun.scenario = request.scenario;
  Evaluator evaluator(s.model, s.cluster, s.training);
  begun.predicted = evaluator.estimate(begun.plan);
  if (auto note = not_predicted(begun); !note.empty()) begun.notes.push_back(std::move(note));
  computes.require_memory(backend.ranks_of_machine(begun.plan), begun.predicted);
  for (auto& note : computes.notes_on_ranks(request, begun.plan))
    begun.notes.push_back(std::move(note));
  EarlyEnd end(request, begun);
  const auto program = [&](Transport& transport) {
    train_rank(evaluator, begun, request, transport, end);
  };
  backend.start(request, begun.plan, end, program);
  RunResult result = end.result();
  if (result.iterations == 0) return std::nullopt;  // another rank has it
  predict_at_pace(s, result);
  return result;
}

std::optional<RunResult> run(const RunRequest& request) {
  return request.backend->perform(request);
}

}  // namespace runtime
