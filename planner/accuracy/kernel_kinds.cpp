#include "planner/accuracy/kernel_kinds.hpp"

#include <fmt/format.h>

#include <cmath>

namespace planner {

namespace {

constexpr double meant = 10;  // per cent

bool counts(const ValidationRow& row, std::size_t kind) {
  return row.kinds_measured && row.kinds_predicted && row.counts() &&
         (*row.kinds_measured)[kind] >= counted_share * row.measured;
}

double error_pct(const ValidationRow& row, std::size_t kind) {
  const double measured = (*row.kinds_measured)[kind];
  return 100 * ((*row.kinds_predicted)[kind] - measured) / measured;
}

}  // namespace

KindError kind_error(const std::vector<ValidationRow>& rows, std::size_t kind) {
  KindError all;
  for (const ValidationRow& row : rows) {
    if (!counts(row, kind)) continue;
    const double error = error_pct(row, kind);
    ++all.runs;
    all.within += std::abs(error) <= meant ? 1 : 0;
    all.mape += std::abs(error);
    all.bias += error;
    if (std::abs(error) <= std::abs(all.largest)) continue;
    all.largest = error;
    all.largest_in = row.id;
  }
  if (all.runs > 0) {
    all.mape /= all.runs;
    all.bias /= all.runs;
  }
  return all;
}

Table kind_error_table(const std::vector<ValidationRow>& rows) {
  Table t{{left("kind of kernel"), "runs", "within 10 %", "mean error %", "bias %", "largest %",
           left("in")}};
  for (std::size_t kind = 0; kind < kind_keys.size(); ++kind) {
    const KindError error = kind_error(rows, kind);
    if (error.runs == 0) continue;
    t.rows.push_back({std::string(kind_name(kind)), fmt::format("{}", error.runs),
                      fmt::format("{}", error.within), one_decimal(error.mape),
                      fmt::format("{:+.1f}", error.bias), fmt::format("{:+.1f}", error.largest),
                      error.largest_in});
  }
  return t;
}

Table kind_run_table(const std::vector<ValidationRow>& rows) {
  Table t{{left("run"), left("kind of kernel"), "measured ms", "predicted ms", "error %"}};
  for (const ValidationRow& row : rows) {
    for (std::size_t kind = 0; kind < kind_keys.size(); ++kind) {
      if (!counts(row, kind)) continue;
      t.rows.push_back({row.id, std::string(kind_name(kind)),
                        fmt::format("{:.1f}", 1e3 * (*row.kinds_measured)[kind]),
                        fmt::format("{:.1f}", 1e3 * (*row.kinds_predicted)[kind]),
                        fmt::format("{:+.1f}", error_pct(row, kind))});
    }
  }
  return t;
}

}  // namespace planner
