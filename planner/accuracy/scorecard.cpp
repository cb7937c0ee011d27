#include "planner/accuracy/scorecard.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "planner/accuracy/residual_fit.hpp"

namespace planner {

Scorecard scorecard_of(const std::vector<ValidationRow>& rows) {
  return {summary_of(rows), rank_agreement(rows), left_out_coverage(rows)};
}

std::vector<const ValidationRow*> worst_rows(const std::vector<ValidationRow>& rows,
                                             std::size_t most, const std::string& source) {
  std::vector<const ValidationRow*> timed;
  for (const auto& row : rows) {
    if (row.predicted_time() && (source.empty() || row.source == source)) timed.push_back(&row);
  }
  std::stable_sort(timed.begin(), timed.end(), [](const auto* a, const auto* b) {
    return std::abs(a->error_pct()) > std::abs(b->error_pct());
  });
  timed.resize(std::min(most, timed.size()));
  return timed;
}

std::string without_place(const std::string& error) {
  const auto place = error.find(": ");
  return place == std::string::npos ? error : error.substr(place + 2);
}

std::vector<std::pair<int, std::string>> error_counts(const std::vector<ValidationRow>& rows) {
  std::map<std::string, int> counts;
  for (const auto& row : rows) {
    if (row.quantity != "fits" || row.error.empty()) continue;
    ++counts[without_place(row.error)];
  }
  std::vector<std::pair<int, std::string>> sorted;
  for (const auto& [why, count] : counts) sorted.emplace_back(count, why);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  return sorted;
}

}  // namespace planner
