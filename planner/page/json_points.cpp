#include "planner/page/json_points.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/unit_text.hpp"
#include "planner/page/json_curves.hpp"
#include "planner/page/json_figure.hpp"
#include "planner/page/json_rest.hpp"
#include "planner/page/json_shown.hpp"
#include "planner/page/svg_bar.hpp"
#include "planner/report/html_table.hpp"

namespace planner {

namespace {

using namespace costmodel;

bool is_sweep(const Json& report) {
  return report.is_array() && !report.empty() && std::ranges::all_of(report, [](const Json& point) {
           return point.is_object() && point.contains("fits") &&
                  (point.contains("iteration_s") || point.contains("next_token_s"));
         });
}

double time_of(const Json& point) { return number_at(point, {time_key(point)}); }
// What is the more the better.
double merit(const Json& point) {
  return is_served(point) ? number_at(point, {"output_tokens_per_s"}) : -time_of(point);
}
bool fits(const Json& point) { return at(point, {"fits"}) == Json(true); }

// The point that fits and takes least, or serves most; null where none does.
const Json* fastest(const Json& points) {
  const Json* best = nullptr;
  for (const Json& point : points) {
    if (fits(point) && (best == nullptr || merit(point) > merit(*best))) best = &point;
  }
  return best;
}

std::vector<std::string> swept_keys(const Json& point) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : point.items()) {
    if (is_result(key)) break;
    keys.push_back(key);
  }
  return keys;
}

std::string verdict_cell(const Json& point) {
  if (at(point, {time_key(point)}).is_number())
    return fits(point) ? "fits" : "<span class=\"bad\">does not fit</span>";
  return "<span class=\"bad\">" + html_text(words(at(point, {"error"}))) + "</span>";
}

}  // namespace

std::string points_verdict(const Json& report) {
  if (!is_sweep(report)) return "";
  const Json* best = fastest(report);
  if (best == nullptr) return "<b class=\"bad\">No point fits.</b>";
  std::vector<std::string> where;
  for (const auto& key : swept_keys(*best)) where.push_back(key + " " + words((*best)[key]));
  const auto fitting = std::ranges::count_if(report, &fits);
  const bool served = is_served(*best);
  return fmt::format(
      "<b>{} {}</b>{}: the {} that fits; {} of {} points fit.",
      served ? count_figure((*best)["output_tokens_per_s"])
             : seconds_figure((*best)["iteration_s"]),
      served ? "output tokens/s" : "an iteration",
      where.empty() ? "" : " at " + html_text(fmt::format("{}", fmt::join(where, ", "))),
      served ? "most" : "fastest", format_integer(fitting),
      format_integer(static_cast<std::int64_t>(report.size())));
}

std::string points_section(const Json& report) {
  constexpr std::size_t most = 2'000;
  if (!is_sweep(report)) return "";
  const Json* best = fastest(report);
  double full = 0;
  for (const Json& point : report) full = std::max(full, time_of(point));
  const std::string time = time_key(report.front());
  std::vector<std::string> keys;
  Table table;
  for (const auto& [key, value] : report.front().items()) {
    if (key == "fits" || key == "knee" || key == "error")
      continue;  // see the last column, the curve
    keys.push_back(key);
    table.columns.push_back({title_of(key), key != "plan"});
    if (key == time) table.columns.push_back({"", false});
  }
  table.columns.push_back({"", false});
  for (std::size_t i = 0; i < std::min(most, report.size()); ++i) {
    const Json& point = report[i];
    auto& row = table.rows.emplace_back();
    for (const char* key : {"fits", "knee"}) note_shown(at(point, {key}));
    for (const std::string& key : keys) {
      const std::string shown = line_html(key, at(point, {key.c_str()}));
      row.push_back(key == "plan"                   ? "<span class=\"told\">" + shown + "</span>"
                    : key == time && &point == best ? "<b>" + shown + "</b>"
                                                    : shown);
      if (key != time) continue;
      const std::string_view colour = &point == best ? "reduction"
                                      : fits(point)  ? "compute"
                                                     : "bubble";
      row.push_back(bar_svg({{colour, time_of(point), "time"}}, full, 0, "time"));
    }
    row.push_back(verdict_cell(point));
  }
  std::string note =
      fmt::format("<p class=\"note\">Grey bars: does not fit. Green: the {} that fits.",
                  is_served(report.front()) ? "most tokens a second" : "fastest");
  if (report.size() > most) note += fmt::format(" The first {} points; the JSON has all.", most);
  return curves_section(report) + section("Every point", note + "</p>\n" + table_of_html(table));
}

}  // namespace planner
