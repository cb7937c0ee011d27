#include "planner/commands/export_targets.hpp"

#include <array>

#include "planner/frameworks/json_deepspeed.hpp"
#include "planner/frameworks/launch_script.hpp"
#include "planner/report/json_report.hpp"

namespace planner {

namespace {

Exported to_megatron(const costmodel::Scenario& scenario, const costmodel::ParallelPlan& plan) {
  const MegatronExport exported = export_megatron(scenario, plan);
  Table table{{{"argument", false}}, {}};
  for (const auto& argument : exported.arguments) table.rows.push_back({argument});
  return {launch_script(exported, scenario, plan), rows_json(table), exported.notes};
}

}  // namespace

std::span<const ExportTarget> export_targets() {
  static constexpr std::array<ExportTarget, 2> targets{
      {{"megatron", "a launch script of pretrain_gpt.py; its arguments", to_megatron},
       {"deepspeed", "a script that writes ds_config.json and launches; ds_config.json",
        export_deepspeed}}};
  return targets;
}

}  // namespace planner
