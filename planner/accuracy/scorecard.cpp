#include "planner/accuracy/scorecard.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace planner {

Scorecard scorecard_of(const std::vector<ValidationRow>& rows,
                       const costmodel::ResidualTable* kept) {
  Scorecard card{summary_of(rows), rank_agreement(rows), left_out_chances(rows)};
  if (kept == nullptr) return card;
  constexpr double rounded = 0.01;  // per cent, as the table is written
  const int runs = kept->kinds[0].count.runs + kept->kinds[1].count.runs;
  const bool same = std::abs(kept->unseen.in_sample.sources - card.summary.macro_mape) <= rounded;
  if (same && runs == card.summary.all.rows) card.unseen = kept;
  return card;
}

std::vector<const ValidationRow*> worst_rows(const std::vector<ValidationRow>& rows,
                                             std::size_t most, const std::string& source) {
  std::vector<const ValidationRow*> timed;
  for (const auto& row : rows) {
    if (row.predicted_time() && (source.empty() || row.source == source)) timed.push_back(&row);
  }
  std::ranges::stable_sort(timed, [](const auto* a, const auto* b) {
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
  std::ranges::stable_sort(sorted, [](const auto& a, const auto& b) { return a.first > b.first; });
  return sorted;
}

}  // namespace planner
