#include "planner/report/machines_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/plan/plan_text.hpp"

namespace planner {

using namespace costmodel;

namespace {

void add_unknown_price(const Scenario& s, std::vector<std::string>& notes) {
  if (s.cluster.operation.usd_per_device_hour > 0) return;
  notes.emplace_back(
      "What a device costs is not known: say --set cluster.price.usd_per_device_hour=2.50, or what "
      "you pay, for dollars.");
}

}  // namespace

double device_hours_per_billion_tokens(const FrontPoint& point) {
  return static_cast<double>(point.devices) / point.plan.tokens_per_s * 1e9 / 3600;
}

Table device_front_table(const DeviceFront& front, const Scenario& s) {
  const double price = s.cluster.operation.usd_per_device_hour;
  Table table{{"devices", "iteration", "tokens/s", "device hours a B tokens"}};
  if (price > 0) table.columns.push_back({"dollars"});
  for (const char* title : {"GiB", "free"}) table.columns.push_back({title});
  table.columns.push_back({"plan", false});
  for (const FrontPoint& point : front.points) {
    if (!point.on_front) continue;
    const double hours = device_hours_per_billion_tokens(point);
    auto& row = table.rows.emplace_back(std::vector<std::string>{
        format_integer(point.devices), format_seconds(point.plan.iteration),
        format_integer(std::llround(point.plan.tokens_per_s)), fmt::format("{:.4g}", hours)});
    if (price > 0) row.push_back(format_count(hours * price));
    row.insert(row.end(),
               {format_gib(point.plan.peak), format_gib(point.plan.capacity - point.plan.peak),
                to_string(point.plan.plan)});
  }
  return table;
}

std::vector<std::string> device_front_sentences(const DeviceFront& front, const Scenario& s) {
  std::vector<std::string> all;
  const auto left = std::ranges::count(front.points, false, &FrontPoint::on_front);
  if (left > 0) {
    all.push_back(fmt::format(
        "{} of {} that were tried are left out: another is as good in all of time, devices, device "
        "hours and memory.",
        left, front.points.size()));
  }
  add_unknown_price(s, all);
  if (front.interrupted) all.emplace_back("Stopped early: not all numbers of devices were tried.");
  return all;
}

std::string device_front_report(const DeviceFront& front, const Scenario& s,
                                const ReportStyle& style) {
  if (front.points.empty()) return "";
  std::string text =
      table_section("Time against devices, cost and memory (plans that no other beats in all)",
                    device_front_table(front, s), style);
  text += bullets(device_front_sentences(front, s), style);
  return text;
}

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

bool in_time(const Rung& rung, const RunLimits& limits) {
  return rung.best && (limits.days <= 0 || rung.run.days_with_failures <= limits.days);
}

// The soonest of those that have a plan, or the cheapest of those in time; null: none has.
const Rung* nearest(const DeviceLadder& ladder, const RunLimits& limits, bool by_price) {
  const auto missed = [&](const Rung& rung) {
    if (!by_price) return rung.run.days_with_failures;
    return in_time(rung, limits) ? rung.run.usd.value_or(INFINITY) : INFINITY;
  };
  const Rung* best = nullptr;
  for (const Rung& rung : ladder.rungs) {
    if (rung.best && (best == nullptr || missed(rung) < missed(*best))) best = &rung;
  }
  return best;
}

}  // namespace

std::string ladder_verdict(const DeviceLadder& ladder, const RunLimits& limits, const Scenario& s) {
  const std::string tokens = format_count(s.training.run_tokens) + " tokens";
  if (ladder.chosen) {
    return fmt::format("{} of those tried{} that train {}{}: {}.",
                       limits.usd > 0 ? "The cheapest" : "The fewest",
                       ladder.interrupted ? " before it was stopped" : "", tokens,
                       limits_text(limits), run_sentence(ladder.rungs[*ladder.chosen]));
  }
  if (ladder.interrupted) {
    return fmt::format(
        "Stopped early: of {} numbers of devices tried none trains {}{}; others were not tried.",
        ladder.rungs.size(), tokens, limits_text(limits));
  }
  const std::string none =
      fmt::format("No number of devices up to {} trains {}{}", format_integer(s.cluster.devices),
                  tokens, limits_text(limits));
  // More devices are no cheaper.
  const bool by_price = limits.usd > 0 && std::ranges::any_of(ladder.rungs, [&](const Rung& rung) {
                          return in_time(rung, limits);
                        });
  const Rung* rung = nearest(ladder, limits, by_price);
  if (rung == nullptr) return none + ": no plan fits on any that was tried.";
  return fmt::format("{}: {}, {}", none, run_sentence(*rung),
                     by_price ? (limits.days > 0 ? "the cheapest in time." : "the cheapest.")
                              : "the soonest. More of them: --set cluster.devices=N.");
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
         table_section("Numbers of devices tried, each with its best plan", ladder_table(ladder),
                       style) +
         "\n";
}

namespace {

// The price of an upgraded device at which a token costs what it does without.
std::string worth_text(const UpgradeGain& gain, const Scenario& s) {
  if (gain.speedup_per_cost) return "";
  const double price = s.cluster.operation.usd_per_device_hour;
  if (price > 0) return fmt::format("{:.2f} dollars an hour", price * gain.speedup);
  return fmt::format("{:.3f} x the price", gain.speedup);
}

std::string per_cost_text(const UpgradeGain& gain) {
  return gain.speedup_per_cost ? fmt::format("{:.3f}", *gain.speedup_per_cost) : "";
}

}  // namespace

Table upgrade_table(const UpgradeGains& found, const Scenario& s) {
  Table table{{left("upgrade"), "iteration", right("speed-up", 0), right("over cost", 2),
               "pays up to", left("plan")}};
  for (const UpgradeGain& gain : found.gains) {
    auto& row = table.rows.emplace_back(std::vector<std::string>{gain.name});
    if (!gain.best) {
      const std::string why = gain.refused.empty() ? "none fits" : "none: " + gain.refused;
      row.insert(row.end(), {"", "", "", "", why});
      continue;
    }
    row.insert(row.end(),
               {format_seconds(gain.best->iteration), fmt::format("{:.3f}", gain.speedup),
                per_cost_text(gain), worth_text(gain, s),
                gain.same_plan ? "the same" : to_string(gain.best->plan)});
  }
  return table;
}

std::vector<std::string> upgrade_sentences(const UpgradeGains& found, const Scenario& s) {
  std::vector<std::string> all{fmt::format(
      "Against {} of the best plan without; the plan is searched again for each, with the "
      "same batch.",
      format_seconds(found.without.iteration))};
  all.emplace_back(
      "Over cost: more devices cost by their number; at 1 or more a token costs no more. Pays up "
      "to: the price of a device, network included, at which a token costs what it does without; "
      "what the upgrade costs is not in any file.");
  add_unknown_price(s, all);
  if (found.interrupted) all.emplace_back("Stopped early: not all upgrades were tried.");
  return all;
}

std::string upgrade_report(const UpgradeGains& found, const Scenario& s, const ReportStyle& style) {
  std::string text = table_section("What an upgrade buys (one at a time, the best plan of each)",
                                   upgrade_table(found, s), style);
  text += bullets(upgrade_sentences(found, s), style);
  return text;
}

}  // namespace planner
