#include "calibrate/commands/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/cost/device_time.hpp"
#include "costmodel/cost/measured_time.hpp"
#include "costmodel/estimate/evaluator.hpp"

namespace calibrate {

using namespace costmodel;

namespace {

// An operator's samples cover all micro-batches and all its layers.
double calls_a_micro_batch(const OpRecorder::Entry& entry, int micro_batches) {
  return static_cast<double>(entry.times.size()) / micro_batches;
}

void add_row(std::vector<Compared>& rows, const std::string& name, Seconds predicted,
             Seconds measured) {
  const auto row =
      std::find_if(rows.begin(), rows.end(), [&](const Compared& c) { return c.name == name; });
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
  std::stable_sort(rows.begin(), rows.end(),
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
  std::sort(errors.begin(), errors.end());
  const std::size_t n = errors.size();
  return {(errors[(n - 1) / 2] + errors[n / 2]) / 2, errors.back()};
}

}  // namespace calibrate
