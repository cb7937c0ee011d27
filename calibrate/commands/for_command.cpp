#include "calibrate/commands/for_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "calibrate/measure/stage_probe.hpp"
#include "calibrate/profile/profile_parts.hpp"
#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/machine/device_reader.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "runtime/run/free_memory.hpp"
#include "runtime/run/run_command.hpp"
#include "runtime/run/supported.hpp"

namespace calibrate {

using namespace costmodel;

namespace {

// More layers take their operators no longer: the weights of so many are in no core's cache.
constexpr std::int64_t most_layers = 4;

// The layers of one stage, with the sizes that they have on a rank of the plan.
Subject on_one_rank(const Subject& subject) {
  ModelSpec model = subject.evaluator.model();
  model.layers = std::min<std::int64_t>(ceil_div(model.layers, subject.plan.pp), most_layers);
  ParallelPlan plan;
  plan.tp = subject.plan.tp;
  plan.micro_batch = subject.plan.micro_batch;
  plan.sequence_parallel = subject.plan.sequence_parallel;
  TrainingSpec training = subject.evaluator.training();
  training.global_batch = plan.micro_batch;
  return {subject.name, {model, resized(subject.evaluator.cluster(), plan.tp), training}, plan};
}

}  // namespace

void require_memory(const Subject& subject) {
  Subject one = on_one_rank(subject);
  const Bytes needed = runtime::memory_of_ranks(one.evaluator.estimate(one.plan), {0});
  const auto free = runtime::free_memory();
  if (!free || needed <= *free) return;
  throw ConfigError({},
                    fmt::format("{} layers of {} take {}, and this machine has {} left",
                                one.evaluator.model().layers, one.name, format_bytes(needed),
                                format_bytes(*free)),
                    "choose a smaller model or micro-batch, or a larger tp");
}

namespace {

std::vector<Record> shapes_in_place(const Subject& one, const DeviceSpec& device,
                                    const std::string& task, const StopRule& rule) {
  std::vector<Record> records;
  for (const auto& entry : time_stage(one.evaluator, one.plan, rule).ops) {
    if (!lacks_shape(device, entry.op, entry.pass, one.precision())) continue;
    records.push_back(
        shape_record(task, entry.op, entry.pass, entry.timing(), device, one.precision()));
  }
  return records;
}

const Value* processor_of(const Value& profile) {
  const Value* machine = profile.find("machine");
  return machine != nullptr ? machine->find("processor") : nullptr;
}

}  // namespace

Subject subject_of(const std::string& scenario, const ConfigPath& path,
                   const runtime::Backend& backend) {
  Scenario s = load_scenario(scenario_file(scenario, path), path, {});
  const ParallelPlan plan = runtime::executed_plan(s);
  if (plan.pipelines() > 1) {
    throw ConfigError(s.plan.mark_of("replicas"), "--for measures layers of one size",
                      "leave plan.replicas out");
  }
  const auto faults = runtime::unsupported(s.model, s.training, plan);
  if (!faults.empty()) {
    throw ConfigError(s.plan.mark_of(faults.front().key), faults.front().reason,
                      faults.front().remedy);
  }
  runtime::compute_as_can_be(backend, s.training);
  return {s.name, {s.model, s.cluster, s.training}, plan};
}

Profile profile_named(const std::string& name, const ConfigPath& path) {
  auto found = resolve_config(path, "devices", scalar_value(name, {"--profile", 0, 0}));
  DeviceSpec device = read_device(found.value, found.name);
  if (processor_of(found.value) == nullptr || device.measured.empty()) {
    throw ConfigError({"--profile", 0, 0},
                      fmt::format("{} was not measured by shardplan calibrate", quote(name)),
                      "leave --profile out: then a new one is measured");
  }
  return {name, std::move(found.value), std::move(device)};
}

void require_measured_on(const Profile& profile, const std::string& processor) {
  const std::string& its = processor_of(profile.value)->text;
  if (its == processor) return;
  throw ConfigError({"--profile", 0, 0},
                    fmt::format("{} is of another device, {}: this is {}", quote(profile.name),
                                printable(its), printable(processor)),
                    "leave --profile out, or calibrate where it was measured");
}

std::vector<LackingShape> lacking_shapes(const Subject& subject, const DeviceSpec& device) {
  std::vector<LackingShape> all;
  for (const LayerKind kind : {LayerKind::embedding, LayerKind::block, LayerKind::head}) {
    add_lacking(device, subject.precision(), kind, subject.evaluator.op_list(kind, subject.plan),
                all);
  }
  return all;
}

std::vector<Task> cpu_shape_tasks(const Subject& subject, const DeviceSpec& device, bool quick) {
  std::vector<Task> tasks;
  if (lacking_shapes(subject, device).empty()) return tasks;
  const Subject one = on_one_rank(subject);
  for (int round = 1; round <= (quick ? 2 : 3); ++round) {
    const std::string name =
        fmt::format("layers of {}, tp {}, {} x {} tokens, round {}", subject.name, one.plan.tp,
                    one.plan.micro_batch, one.evaluator.training().sequence, round);
    tasks.push_back({name, 1,
                     [=](const StopRule& rule) { return shapes_in_place(one, device, name, rule); },
                     round > 1});
  }
  return tasks;
}

void note_shapes(Value& profile, const std::vector<Record>& records, const std::string& date,
                 const std::string& command) {
  add_shapes(profile, records);
  Value& machine = *profile.find("machine");
  const Value* before = machine.find("shapes");
  const std::string note = fmt::format("{}: {}", date, command);
  machine.set("shapes", quoted(before != nullptr ? before->text + "; " + note : note));
}

}  // namespace calibrate
