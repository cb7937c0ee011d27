#include "planner/page/json_machines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/unit_text.hpp"
#include "planner/page/json_figure.hpp"
#include "planner/page/json_rest.hpp"
#include "planner/page/json_shown.hpp"
#include "planner/page/svg_bar.hpp"
#include "planner/page/svg_chart.hpp"
#include "planner/report/html_table.hpp"

namespace planner {

namespace {

using namespace costmodel;

// "" for what is not known.
std::string cell(const Json& object, const char* key) {
  const Json& number = at(object, {key});
  return number.is_null() ? "" : keyed_figure(key, number);
}

std::string sizes_of(const Json& plan) {
  if (!plan.is_object()) return "none fits";
  std::string text;
  for (const auto& [key, letter] : {std::pair("tp", "t"), std::pair("pp", "p"),
                                    std::pair("dp", "d"), std::pair("micro_batch", "b")})
    text += fmt::format("{}{} {}", text.empty() ? "" : " · ", letter, words(at(plan, {key})));
  for (const auto& [key, letter] :
       {std::pair("cp", "c"), std::pair("ep", "e"), std::pair("vpp", "v")}) {
    if (number_at(plan, {key}) > 1) text += fmt::format(" · {} {}", letter, words(at(plan, {key})));
  }
  if (number_at(plan, {"zero"}) > 0) text += " · ZeRO " + words(at(plan, {"zero"}));
  const std::string recompute = words(at(plan, {"recompute"}));
  if (!recompute.empty() && recompute != "none") text += " · recompute " + recompute;
  return html_text(text);
}

std::string plan_or_reason(const Json& gain) {
  const std::string refused = words(at(gain, {"refused"}));
  return refused.empty() ? sizes_of(at(gain, {"plan"})) : "none: " + html_text(refused);
}

std::string device_text(double n) { return format_integer(std::llround(n)); }

// A line of (devices, `key`) over the objects of a list.
ChartLine line_of(const Json& rows, const char* colour, const char* name, const char* key,
                  std::string (*shown)(double)) {
  ChartLine line{.colour = colour, .name = name};
  for (const Json& row : rows) {
    const Json& value = at(row, {key});
    ChartPoint point{.x = number_at(row, {"devices"}), .y = std::nullopt, .hover = ""};
    if (value.is_number()) {
      point.y = value.get<double>();
      point.hover = fmt::format("{} devices: {}", device_text(point.x), shown(*point.y));
    }
    line.points.push_back(point);
  }
  return line;
}

Chart over_devices(const std::string& label, const std::string& y_title,
                   std::string (*y_text)(double), std::vector<ChartLine> lines) {
  Chart chart{.label = label,
              .x_title = "devices",
              .y_title = y_title,
              .y_text = y_text,
              .lines = std::move(lines)};
  for (const ChartPoint& point : chart.lines.front().points) {
    if (!chart.x_values.empty() && chart.x_values.back() == point.x) continue;
    chart.x_values.push_back(point.x);
    chart.x_names.push_back(device_text(point.x));
  }
  return chart;
}

std::string tokens_text(double n) { return format_count(n) + " tokens/s"; }
std::string hours_text(double h) { return fmt::format("{:.4g} device hours", h); }
std::string days_text(double days) { return fmt::format("{:.1f} days", days); }

}  // namespace

std::string upgrades_section(const Json& report) {
  const Json& found = at(report, {"upgrades"});
  const Json& gains = at(found, {"gains"});
  if (!gains.is_array()) return "";
  double full = 0;
  for (const Json& gain : gains) full = std::max(full, std::abs(number_at(gain, {"speedup"}) - 1));
  Table table{{left("upgrade"), "devices", "iteration", "speed-up", left(""), "over cost",
               "pays up to", "$ a device hour", left("plan")}};
  for (const Json& gain : gains) {
    const bool any = at(gain, {"speedup"}).is_number();
    const double change = any ? number_at(gain, {"speedup"}) - 1 : 0;
    table.rows.push_back(
        {"<span class=\"told\">" + html_text(words(at(gain, {"upgrade"}))) + "</span>",
         count_figure(at(gain, {"devices"})), cell(gain, "iteration_s"), cell(gain, "speedup"),
         any ? bar_svg({{change < 0 ? "bubble" : "reduction", std::abs(change), "speed-up"}}, full,
                       0, "speed-up")
             : "",
         cell(gain, "speedup_per_cost"), cell(gain, "pays_up_to"),
         cell(gain, "pays_up_to_usd_per_device_hour"),
         at(gain, {"same_plan"}) == Json(true) ? "the same" : plan_or_reason(gain)});
  }
  return section("What an upgrade buys",
                 table_of_html(table) + sentences(at(found, {"sentences"})));
}

std::string device_front_section(const Json& report) {
  const Json& found = at(report, {"device_front"});
  const Json& points = at(found, {"points"});
  if (!points.is_array() || points.empty()) return "";
  Json front = Json::array(), rest = Json::array();
  for (const Json& point : points)
    (at(point, {"on_front"}) == Json(true) ? front : rest).push_back(point);
  const auto lines = [&](const char* key, std::string (*shown)(double)) {
    std::vector<ChartLine> all{line_of(front, "reduction", "on the front", key, shown)};
    all.front().joined = false;
    if (!rest.empty()) {
      all.push_back(line_of(rest, "bubble", "beaten in all", key, shown));
      all.back().joined = false;
    }
    return all;
  };
  std::string html = chart_html(over_devices("tokens a second over devices", "tokens/s",
                                             &format_count, lines("tokens_per_s", &tokens_text)));
  html +=
      chart_html(over_devices("device hours over devices", "device hours a billion tokens",
                              &device_text, lines("device_hours_per_billion_tokens", &hours_text)));
  const bool priced = !at(found, {"usd_per_device_hour"}).is_null();
  Table table{{"devices", "iteration", "tokens/s", "device hours a B tokens"}};
  if (priced) table.columns.push_back({"$ a B tokens"});
  for (const char* title : {"GiB", "free"}) table.columns.push_back({title});
  table.columns.push_back({"plan", false});
  for (const Json& point : points) {
    note_shown(at(point, {"on_front"}));
    if (at(point, {"on_front"}) != Json(true)) continue;
    auto& row = table.rows.emplace_back(std::vector<std::string>{
        count_figure(at(point, {"devices"})), seconds_figure(at(point, {"iteration_s"})),
        count_figure(at(point, {"tokens_per_s"})),
        count_figure(at(point, {"device_hours_per_billion_tokens"}))});
    if (priced) row.push_back(cell(point, "usd_per_billion_tokens"));
    row.insert(row.end(),
               {gib_figure(at(point, {"peak_bytes"})), gib_figure(at(point, {"headroom_bytes"})),
                sizes_of(at(point, {"plan"}))});
  }
  return section("Time against devices, cost and memory",
                 html + table_of_html(table) + sentences(at(found, {"sentences"})));
}

std::string ladder_section(const Json& report) {
  const Json& found = at(report, {"devices"});
  const Json& tried = at(found, {"tried"});
  if (!tried.is_array() || tried.empty()) return "";
  Json days = Json::array();
  const bool priced = std::ranges::any_of(tried, [](const Json& rung) {
    return at(rung, {"training_run", "usd"}).is_number();
  });
  Table table{{"devices", "iteration", "days with failures", "device hours"}};
  if (priced) table.columns.push_back({"$"});
  for (const char* title : {"", "plan"}) table.columns.push_back({title, false});
  const Json& chosen = at(found, {"chosen"});
  for (const Json& rung : tried) {
    note_shown(at(rung, {"keeps_limits"}));
    const Json& run = at(rung, {"training_run"});
    const Json& with_failures = at(run, {"days_with_failures"});
    days.push_back({{"devices", at(rung, {"devices"})}, {"days", with_failures}});
    auto& row = table.rows.emplace_back(
        std::vector<std::string>{count_figure(at(rung, {"devices"})), cell(rung, "iteration_s"),
                                 cell(run, "days_with_failures"), cell(run, "device_hours")});
    if (priced) row.push_back(cell(run, "usd"));
    row.push_back(at(rung, {"devices"}) == chosen            ? "<b>chosen</b>"
                  : at(rung, {"keeps_limits"}) == Json(true) ? "keeps it"
                                                             : "");
    row.push_back(sizes_of(at(rung, {"plan"})));
  }
  ChartLine line = line_of(days, "reduction", "days", "days", &days_text);
  line.joined = false;
  for (ChartPoint& point : line.points) point.marked = chosen == Json(std::llround(point.x));
  const std::string chart =
      chart_html(over_devices("days over devices", "days with failures",
                              [](double d) { return fmt::format("{:g}", d); }, {line}));
  return section("Numbers of devices tried", "<p>" + html_text(words(at(found, {"verdict"}))) +
                                                 "</p>\n" + chart + table_of_html(table));
}

}  // namespace planner
