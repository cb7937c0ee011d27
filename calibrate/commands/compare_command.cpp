#include "calibrate/commands/compare_command.hpp"

#include <fmt/format.h>

#include <utility>

#include "calibrate/commands/compare.hpp"
#include "calibrate/commands/cpu_models.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/machine/device_reader.hpp"
#include "costmodel/scenario/scenario.hpp"

namespace calibrate {

using namespace costmodel;

namespace {

DeviceSpec device_named(const std::string& name, const ConfigPath& path) {
  const auto found = resolve_config(path, "devices", scalar_value(name, {"--profile", 0, 0}));
  auto device = read_device(found.value, found.name);
  if (device.yardstick > Seconds(0)) set_pace_reference(device.yardstick);
  return device;
}

}  // namespace

std::string compare_scenario(const std::string& scenario, const std::string& profile,
                             const ConfigPath& path) {
  const std::vector<std::string> alone{"cluster.devices=1", "plan.tp=1", "plan.pp=1", "plan.dp=1"};
  auto s = load_scenario(scenario_file(scenario, path), path, alone);
  if (!profile.empty()) {
    s.cluster.device = device_named(profile, path);
    set_neighbours(s.cluster);
  }
  s.training.precision = s.training.gradient_precision = Precision::fp32;
  const auto plan = resolve_plan(s);
  Evaluator evaluator(s.model, s.cluster, s.training);
  StopRule rule;
  rule.longest = Seconds(20);
  return fmt::format("{} on one device, times of a micro-batch\n{}", printable(s.model.title),
                     table_of(compare_ops(evaluator, plan, rule)));
}

std::string check_profile(const std::string& profile, const ConfigPath& path) {
  const auto device = device_named(profile, path);
  StopRule rule;
  rule.longest = Seconds(4);
  std::vector<Compared> rows;
  for (const SmallModel& model : held_out_models())
    for (auto& row : compare_stage(model, device, rule)) rows.push_back(std::move(row));
  const auto spread = spread_of(rows);
  return fmt::format("{}{} stage times of {} models: median error {:.1f} %, largest {:.1f} %\n",
                     table_of(rows), rows.size(), held_out_models().size(), spread.median,
                     spread.most);
}

}  // namespace calibrate
