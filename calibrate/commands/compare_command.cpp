#include "calibrate/commands/compare_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "calibrate/commands/cpu_models.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/cost/device_time.hpp"
#include "costmodel/cost/measured_time.hpp"
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

namespace {

// An operator's samples cover all micro-batches and all its layers.
double calls_a_micro_batch(const OpRecorder::Entry& entry, int micro_batches) {
  return static_cast<double>(entry.times.size()) / micro_batches;
}

void add_row(std::vector<Compared>& rows, const std::string& name, Seconds predicted,
             Seconds measured) {
  const auto row = std::ranges::find_if(rows, [&](const Compared& c) { return c.name == name; });
  if (row == rows.end()) {
    rows.push_back({name, predicted, measured});
    return;
  }
  row->predicted += predicted;
  row->measured += measured;
}

}  // namespace

double Compared::error_pct() const {
  return measured.value > 0 ? 100 * (predicted / measured - 1) : 0;
}

std::vector<Compared> compare_ops(Evaluator& evaluator, const ParallelPlan& plan,
                                  const StopRule& rule) {
  const StageTimes times = time_stage(evaluator, plan, rule);
  const auto& cost = evaluator.cost(plan);
  std::vector<Compared> rows;
  for (const auto& entry : times.ops) {
    if (!has_pass(entry.op, entry.pass)) continue;
    const double calls = calls_a_micro_batch(entry, times.forward.repeats);
    const Seconds predicted = device_time(entry.op, entry.pass, evaluator.cluster().device,
                                          evaluator.training().precision);
    const auto pass = pass_names[static_cast<std::size_t>(entry.pass)];
    add_row(rows, fmt::format("{}, {}", entry.node, pass), calls * predicted,
            calls * entry.timing().median);
  }
  std::ranges::stable_sort(rows,
                           [](const auto& a, const auto& b) { return a.measured > b.measured; });
  const PassTimes sum = by_ops(times);
  rows.push_back({"stage forward", cost.times.forward.front(), sum.forward});
  rows.push_back({"stage backward", cost.times.backward.front(), sum.backward});
  rows.push_back({"optimizer", cost.ranks.front().after.optimizer, times.optimizer.median});
  return rows;
}

std::vector<Compared> compare_stage(const SmallModel& model, const DeviceSpec& device,
                                    const StopRule& rule) {
  DeviceSpec at_best = device;  // as in time_stage()
  at_best.together.clear();
  auto evaluator = evaluator_of(model, at_best);
  const auto plan = plan_of(model);
  const StageTimes times = time_stage(evaluator, plan, rule);
  const auto& cost = evaluator.cost(plan);
  const PassTimes sum = by_ops(times);
  return {{model.name() + ", forward", cost.times.forward.front(), sum.forward},
          {model.name() + ", backward", cost.times.backward.front(), sum.backward}};
}

std::string table_of(const std::vector<Compared>& rows) {
  std::string text =
      fmt::format("{:<44} {:>12} {:>12} {:>8}\n", "", "predicted", "measured", "error");
  for (const Compared& row : rows) {
    text +=
        fmt::format("{:<44} {:>12} {:>12} {:>+6.1f} %\n", row.name, format_seconds(row.predicted),
                    format_seconds(row.measured), row.error_pct());
  }
  return text;
}

ErrorSpread spread_of(const std::vector<Compared>& rows) {
  if (rows.empty()) return {};
  std::vector<double> errors;
  errors.reserve(rows.size());
  for (const Compared& row : rows) errors.push_back(std::abs(row.error_pct()));
  std::ranges::sort(errors);
  const std::size_t n = errors.size();
  return {(errors[(n - 1) / 2] + errors[n / 2]) / 2, errors.back()};
}

}  // namespace calibrate
