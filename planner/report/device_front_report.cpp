#include "planner/report/device_front_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/plan/plan_text.hpp"

namespace planner {

using namespace costmodel;

double device_hours_per_billion_tokens(const FrontPoint& point) {
  return static_cast<double>(point.devices) / point.plan.tokens_per_s * 1e9 / 3600;
}

Table device_front_table(const DeviceFront& front, const Scenario& s) {
  const double price = s.cluster.operation.usd_per_device_hour;
  Table table{{{"devices"}, {"iteration"}, {"tokens/s"}, {"device hours a B tokens"}}, {}};
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
  if (s.cluster.operation.usd_per_device_hour == 0) {
    all.emplace_back(
        "What a device costs is not known: say --set cluster.price.usd_per_device_hour=2.50, or "
        "what you pay, for dollars.");
  }
  if (front.interrupted) all.emplace_back("Stopped early: not all numbers of devices were tried.");
  return all;
}

std::string device_front_report(const DeviceFront& front, const Scenario& s,
                                const ReportStyle& style) {
  if (front.points.empty()) return "";
  std::string text = section_title(
      "Time against devices, cost and memory (plans that no other beats in all)", style);
  text += section_table(device_front_table(front, s), style);
  for (const auto& sentence : device_front_sentences(front, s)) text += bullet(sentence, style);
  return text;
}

}  // namespace planner
