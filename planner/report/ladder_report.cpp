#include "planner/report/ladder_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/plan/plan_text.hpp"

namespace planner {

using namespace costmodel;

namespace {

std::string days_text(double days) { return fmt::format("{:.1f} days", days); }

std::string limits_text(const RunLimits& limits) {
  std::string text;
  if (limits.days > 0) text += fmt::format(" in {}", days_text(limits.days));
  if (limits.usd > 0) text += fmt::format(" for {} dollars", format_count(limits.usd));
  return text;
}

std::string run_sentence(const Rung& rung) {
  return fmt::format(
      "{} devices take {} with failures ({:.1f} to {:.1f} without){}", format_integer(rung.devices),
      days_text(rung.run.days_with_failures), rung.run.days_low, rung.run.days_high,
      rung.run.usd ? fmt::format(" and {} dollars", format_count(*rung.run.usd)) : "");
}

// The soonest of those that have a plan; null: none has.
const Rung* soonest(const DeviceLadder& ladder) {
  const Rung* best = nullptr;
  for (const Rung& rung : ladder.rungs) {
    if (!rung.best) continue;
    if (best == nullptr || rung.run.days_with_failures < best->run.days_with_failures) best = &rung;
  }
  return best;
}

}  // namespace

std::string ladder_verdict(const DeviceLadder& ladder, const RunLimits& limits, const Scenario& s) {
  const std::string tokens = format_count(s.training.run_tokens) + " tokens";
  if (ladder.chosen) {
    return fmt::format("{} of those tried that train {}{}: {}.",
                       limits.usd > 0 ? "The cheapest" : "The fewest", tokens, limits_text(limits),
                       run_sentence(ladder.rungs[*ladder.chosen]));
  }
  const std::string none =
      fmt::format("No number of devices up to {} trains {}{}", format_integer(s.cluster.devices),
                  tokens, limits_text(limits));
  const Rung* rung = soonest(ladder);
  if (rung == nullptr) return none + ": no plan fits on any that was tried.";
  return fmt::format("{}: {}, the soonest. More of them: --set cluster.devices=N.", none,
                     run_sentence(*rung));
}

Table ladder_table(const DeviceLadder& ladder) {
  const bool priced = std::ranges::any_of(
      ladder.rungs, [](const Rung& rung) { return rung.best && rung.run.usd.has_value(); });
  Table table;
  table.columns = {
      {"devices"}, {"iteration"}, {"days with failures", true, 0}, {"device hours", true, 2}};
  if (priced) table.columns.push_back({"dollars"});
  table.columns.push_back({"keeps it", false, 0});
  table.columns.push_back({"plan", false});
  for (std::size_t i = 0; i < ladder.rungs.size(); ++i) {
    const Rung& rung = ladder.rungs[i];
    std::vector<std::string> row{format_integer(rung.devices)};
    if (rung.best) {
      row.insert(row.end(), {format_seconds(rung.best->iteration),
                             fmt::format("{:.1f}", rung.run.days_with_failures),
                             format_count(rung.run.device_hours)});
      if (priced) row.push_back(format_count(rung.run.usd.value_or(0)));
      row.insert(row.end(), {rung.keeps ? (ladder.chosen == i ? "yes: chosen" : "yes") : "no",
                             to_string(rung.best->plan)});
    } else {
      row.insert(row.end(), priced ? 4 : 3, "");
      row.insert(row.end(), {"no", "none fits"});
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string ladder_report(const DeviceLadder& ladder, const RunLimits& limits, const Scenario& s,
                          const ReportStyle& style) {
  return escaped(ladder_verdict(ladder, limits, s), style) + "\n" +
         section_title("Numbers of devices tried, each with its best plan", style) +
         section_table(ladder_table(ladder), style) + "\n";
}

}  // namespace planner
