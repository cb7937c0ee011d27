#include "planner/report/upgrade_report.hpp"

#include <fmt/format.h>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/plan/plan_text.hpp"

namespace planner {

using namespace costmodel;

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
  Table table{{{"upgrade", false},
               {"iteration"},
               {"speed-up", true, 0},
               {"over cost", true, 2},
               {"pays up to"},
               {"plan", false}},
              {}};
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
  if (s.cluster.operation.usd_per_device_hour == 0) {
    all.emplace_back(
        "What a device costs is not known: say --set cluster.price.usd_per_device_hour=2.50, or "
        "what you pay, for dollars.");
  }
  if (found.interrupted) all.emplace_back("Stopped early: not all upgrades were tried.");
  return all;
}

std::string upgrade_report(const UpgradeGains& found, const Scenario& s, const ReportStyle& style) {
  std::string text =
      section_title("What an upgrade buys (one at a time, the best plan of each)", style);
  text += section_table(upgrade_table(found, s), style);
  for (const auto& sentence : upgrade_sentences(found, s)) text += bullet(sentence, style);
  return text;
}

}  // namespace planner
