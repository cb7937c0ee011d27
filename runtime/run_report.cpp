#include "runtime/run_report.hpp"

#include <fmt/format.h>

#include <cmath>

#include "costmodel/units_text.hpp"
#include "runtime/comparison.hpp"

namespace runtime {

namespace {

std::string value_text(Unit unit, double value) {
  switch (unit) {
    case Unit::seconds: return costmodel::format_seconds(costmodel::Seconds(value));
    case Unit::bytes: return costmodel::format_bytes(costmodel::Bytes(value));
    case Unit::fraction: return fmt::format("{:.1f} %", 100 * value);
  }
  return {};
}

std::string error_text(const Compared& row) {
  if (!row.error_pct) return "-";
  if (row.unit == Unit::bytes && row.predicted == row.measured) return "exact";
  const double tenths = std::round(10 * *row.error_pct) / 10 + 0.0;  // no negative zero
  return fmt::format("{:+.1f} {}", tenths, row.unit == Unit::fraction ? "points" : "%");
}

bool is_nothing(const Compared& row) {
  return row.unit == Unit::bytes && row.predicted == 0 && row.measured == 0;
}

std::string losses_text(const std::vector<double>& losses) {
  if (losses.empty()) return {};
  return fmt::format("\nloss {:.6f} -> {:.6f} over {} iterations, checksum {:016x}\n",
                     losses.front(), losses.back(), losses.size(), checksum(losses));
}

}  // namespace

std::string run_report(const RunResult& r, const costmodel::Scenario& s) {
  const std::string ranks = r.computed
                                ? fmt::format("{} ranks, {} iterations, the first one to warm up",
                                              r.plan.devices(), r.iterations)
                                : fmt::format("{} pipeline ranks", r.plan.pp);
  std::string text = fmt::format("{} on {}, batch {} of {} tokens\n{}\nbackend {}: {}\n\n",
                                 s.model.name, s.cluster.name, s.training.global_batch,
                                 s.training.sequence, to_string(r.plan), r.backend, ranks);
  if (r.interrupted) text += fmt::format("ended early: {}\n\n", r.cause);
  text += fmt::format("{:<26}{:>14}{:>14}{:>16}\n", "", "predicted", "measured", "error");
  for (const Compared& row : compare(r)) {
    if (is_nothing(row)) continue;
    text +=
        fmt::format("{:<26}{:>14}{:>14}{:>16}\n", row.title, value_text(row.unit, row.predicted),
                    value_text(row.unit, row.measured), error_text(row));
  }
  text += losses_text(r.measured.loss);
  for (const auto& note : r.notes) text += fmt::format("note: {}\n", note);
  return text;
}

}  // namespace runtime
