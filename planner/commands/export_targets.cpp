#include "planner/commands/export_targets.hpp"

#include <array>

#include "planner/frameworks/export_bridge.hpp"
#include "planner/frameworks/export_nanotron.hpp"
#include "planner/frameworks/export_nemo.hpp"
#include "planner/frameworks/export_torchtitan.hpp"
#include "planner/frameworks/export_trainer.hpp"
#include "planner/frameworks/json_deepspeed.hpp"
#include "planner/frameworks/launch_script.hpp"
#include "planner/report/json_report.hpp"

namespace planner {

using namespace costmodel;

namespace {

Exported to_version(const Scenario& scenario, const ParallelPlan& plan,
                    const std::string& version) {
  const MegatronExport exported = export_megatron_for(scenario, plan, version);
  Table table{{left("argument")}};
  for (const auto& argument : exported.arguments) table.rows.push_back({argument});
  return {launch_script(exported, scenario, plan), rows_json(table), exported.notes};
}

// The newest release.
template <Exported (*Writes)(const Scenario&, const ParallelPlan&, const std::string&)>
Exported newest(const Scenario& scenario, const ParallelPlan& plan) {
  return Writes(scenario, plan, "");
}

std::string fields_json(const std::vector<Override>& fields) {
  Table table{{left("field"), left("value")}};
  for (const auto& field : fields) table.rows.push_back({field.field, field.value});
  return rows_json(table);
}

Exported to_fields(const OverridesScript& exported) {
  return {exported.script, fields_json(exported.overrides), exported.notes};
}

Exported to_bridge(const Scenario& scenario, const ParallelPlan& plan) {
  return to_fields(export_bridge(scenario, plan));
}

Exported to_nemo(const Scenario& scenario, const ParallelPlan& plan) {
  return to_fields(export_nemo(scenario, plan));
}

// A string is written in quotes there, and is one here already.
std::string unquoted(const std::string& value) {
  return value.starts_with('"') ? value.substr(1, value.size() - 2) : value;
}

Exported to_settings(const TorchtitanExport& exported) {
  Table table{{left("section"), left("key"), left("value")}};
  for (const auto& setting : exported.settings)
    table.rows.push_back({setting.section, setting.key, unquoted(setting.value)});
  return {exported.script, rows_json(table), exported.notes};
}

Exported to_torchtitan(const Scenario& scenario, const ParallelPlan& plan) {
  return to_settings(export_torchtitan(scenario, plan, TorchtitanVersion::toml));
}

Exported to_torchtitan_python(const Scenario& scenario, const ParallelPlan& plan) {
  return to_settings(export_torchtitan(scenario, plan, TorchtitanVersion::python));
}

// Of a script with its settings by name.
template <class Written>
Exported to_pairs(const Written& exported) {
  Table table{{left("key"), left("value")}};
  for (const auto& [name, value] : exported.settings) table.rows.push_back({name, value});
  return {exported.script, rows_json(table), exported.notes};
}

template <TrainerTarget Target>
Exported to_trainer(const Scenario& scenario, const ParallelPlan& plan) {
  return to_pairs(export_trainer(scenario, plan, Target));
}

Exported to_nanotron(const Scenario& scenario, const ParallelPlan& plan) {
  return to_pairs(export_nanotron(scenario, plan));
}

}  // namespace

std::span<const ExportTarget> export_targets() {
  constexpr auto no = AdapterWords::none;
  constexpr std::string_view words = "\"$@\"", iterations = "--train-iters 20",
                             ten_iterations = "--train-iters 10",
                             max_steps = "--max_steps 10 \"$@\"";
  static constexpr std::array<ExportTarget, 12> targets{
      {{"megatron", "a launch script of pretrain_gpt.py; its arguments", newest<to_version>, no,
        to_version, iterations, ten_iterations},
       {"megatron-bridge", "a script that starts a Python program with overrides; the overrides",
        to_bridge, AdapterWords::plain, nullptr, "train.train_iters=20", "train.train_iters=10",
        Launcher::torchrun, "megatron-bridge"},
       {"nemo", "a script that starts a Python program on a recipe of NeMo 2.x; its fields",
        to_nemo, no, nullptr, "max_steps = 20", "max_steps = 10", Launcher::torchrun, "nemo-2025"},
       {"torchtitan",
        "a script that writes the TOML of torchtitan 0.2.2 and launches; its settings",
        to_torchtitan, no, nullptr, words, "--training.steps 10 \"$@\"", Launcher::torchrun,
        "torchtitan"},
       {"torchtitan-python",
        "a script that writes the Python configuration of torchtitan of late 2026 and launches; "
        "its settings",
        to_torchtitan_python, no, nullptr, words, "--training.steps 10 \"$@\"", Launcher::torchrun,
        "torchtitan"},
       {"deepspeed", "a script that writes ds_config.json and launches; ds_config.json",
        export_deepspeed, no, nullptr, "", "", Launcher::torchrun, "deepspeed"},
       {"slurm", "a batch script of pretrain_gpt.py; its arguments", newest<to_version>, no,
        to_version, iterations, ten_iterations, Launcher::slurm},
       {"kubernetes", "a Job of pretrain_gpt.py; its arguments", newest<to_version>, no, to_version,
        iterations, ten_iterations, Launcher::kubernetes},
       {"axolotl", "a script that writes its YAML and launches; its settings",
        to_trainer<TrainerTarget::axolotl>, AdapterWords::nf4, nullptr, words, max_steps,
        Launcher::torchrun, "peft"},
       {"llama-factory", "a script that writes its YAML and launches; its settings",
        to_trainer<TrainerTarget::llama_factory>, AdapterWords::nf4, nullptr, words,
        "max_steps=10 \"$@\"", Launcher::torchrun, "peft"},
       {"accelerate", "a script that writes accelerate's YAML and launches TRL; its settings",
        to_trainer<TrainerTarget::accelerate>, AdapterWords::nf4, nullptr, words, max_steps,
        Launcher::torchrun, "peft"},
       {"nanotron", "a script that writes its YAML and launches; its settings", to_nanotron, no,
        nullptr, "train_steps: 20", "train_steps: 10", Launcher::torchrun, "nanotron"}}};
  return targets;
}

}  // namespace planner
