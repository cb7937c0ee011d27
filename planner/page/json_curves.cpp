#include "planner/page/json_curves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "costmodel/base/json_text.hpp"
#include "costmodel/base/unit_text.hpp"
#include "planner/page/json_figure.hpp"
#include "planner/page/svg_chart.hpp"

namespace planner {

bool is_result(std::string_view key) { return key == "m" || key == "output_tokens_per_s"; }

bool is_served(const Json& point) { return point.contains("next_token_s"); }

const char* time_key(const Json& point) {
  return is_served(point) ? "next_token_s" : "iteration_s";
}

namespace {

struct Shown {
  const char* key;
  const char* title;
  std::string (*text)(double);
};

constexpr std::string_view devices_key = "cluster.devices";
constexpr std::size_t most_values = 200, most_cells = 24;

// The values of a key, in the order of their first point.
std::vector<Json> values_of(const Json& points, const std::string& key) {
  std::vector<Json> values;
  for (const Json& point : points) {
    const Json& value = at(point, {key.c_str()});
    if (std::ranges::find(values, value) == values.end()) values.push_back(value);
    if (values.size() > most_values) break;
  }
  return values;
}

bool is_known(const Json& point) { return at(point, {time_key(point)}).is_number(); }
bool is_knee(const Json& point) { return at(point, {"knee"}) == Json(true); }
bool does_fit(const Json& point) { return at(point, {"fits"}) == Json(true); }

std::string duration_text(double s) { return format_seconds(costmodel::Seconds(s)); }
std::string rate_text(double n) { return costmodel::format_count(n); }
std::string efficiency_text(double share) { return fmt::format("{:.0f} %", 100 * share); }

// Where a value stands on the axis: itself, or its place in the list if any is no number.
std::vector<double> places(const std::vector<Json>& values) {
  const bool numbers =
      std::ranges::all_of(values, [](const Json& value) { return value.is_number(); });
  std::vector<double> all;
  for (std::size_t i = 0; i < values.size(); ++i)
    all.push_back(numbers ? values[i].get<double>() : static_cast<double>(i));
  return all;
}

constexpr Shown time_shown{"iteration_s", "iteration", &duration_text};
constexpr Shown rate_shown{"tokens_per_s", "tokens/s", &rate_text};
constexpr Shown token_shown{"next_token_s", "time a token", &duration_text};
constexpr Shown served_shown{"output_tokens_per_s", "output tokens/s", &rate_text};

ChartPoint point_at(const Json& point, const Shown& shown, double x, const std::string& where) {
  ChartPoint p{.x = x, .y = std::nullopt, .hover = ""};
  const Json& y = at(point, {shown.key});
  if (!y.is_number() || !does_fit(point)) return p;
  p.y = y.get<double>();
  p.marked = is_knee(point);
  p.hover = fmt::format("{}: {}{}", where, shown.text(*p.y), p.marked ? ", the knee" : "");
  return p;
}

// One key on the axis; with a second one, a line for each of its values.
Chart chart_of(const Json& points, const std::string& across, const std::string& by,
               const Shown& shown) {
  constexpr std::array colours{"compute", "tp",        "reduction", "pp",
                               "ep",      "recompute", "optimizer", "cp"};
  const auto values = values_of(points, across);
  const auto x = places(values);
  Chart chart{.label = fmt::format("{} over {}", shown.title, across),
              .x_title = across,
              .y_title = shown.title,
              .x_values = x,
              .y_text = shown.text};
  for (const Json& value : values) {
    const bool count = value.is_number_integer();
    chart.x_names.push_back(count ? costmodel::format_integer(value.get<long long>())
                                  : words(value));
  }
  const auto names = by.empty() ? std::vector<Json>{Json()} : values_of(points, by);
  for (std::size_t n = 0; n < std::min(names.size(), colours.size()); ++n) {
    ChartLine line{.colour = colours.at(n), .name = by.empty() ? "" : by + " " + words(names[n])};
    for (const Json& point : points) {
      if (!by.empty() && at(point, {by.c_str()}) != names[n]) continue;
      const Json& value = at(point, {across.c_str()});
      const auto place = std::ranges::find(values, value) - values.begin();
      if (place == static_cast<std::ptrdiff_t>(values.size())) continue;
      line.points.push_back(point_at(point, shown, x[static_cast<std::size_t>(place)],
                                     fmt::format("{} {}{}{}", across, words(value),
                                                 line.name.empty() ? "" : ", ", line.name)));
    }
    std::ranges::stable_sort(line.points, {}, &ChartPoint::x);
    chart.lines.push_back(std::move(line));
  }
  return chart;
}

std::string curve(const Json& points, const std::string& across, const std::string& by,
                  const Shown& shown) {
  return chart_html(chart_of(points, across, by, shown));
}

HeatCell cell_of(const Json& point, const std::string& where) {
  if (!is_known(point)) return {std::nullopt, "–", ""};
  const double seconds = number_at(point, {time_key(point)});
  const bool fits = does_fit(point);
  return {seconds, duration_text(seconds),
          fmt::format("{}: {}{}", where, duration_text(seconds), fits ? "" : ", does not fit"),
          !fits};
}

// Nothing where it would have too many cells.
std::optional<HeatMap> heat_map_of(const Json& points, const std::string& down,
                                   const std::string& across) {
  const auto rows = values_of(points, down), columns = values_of(points, across);
  if (rows.size() > most_cells || columns.size() > most_cells) return std::nullopt;
  const bool served = is_served(points.front());
  HeatMap map{
      .label =
          fmt::format("{} over {} and {}", served ? "time a token" : "iteration", down, across),
      .row_title = fmt::format("{} (rows), time {}", down, served ? "a token" : "of an iteration"),
      .column_title = across};
  for (const Json& row : rows) map.rows.push_back(words(row));
  for (const Json& column : columns) map.columns.push_back(words(column));
  map.cells.assign(rows.size(), std::vector<HeatCell>(columns.size()));
  for (const Json& point : points) {
    const auto r = std::ranges::find(rows, at(point, {down.c_str()})) - rows.begin();
    const auto c = std::ranges::find(columns, at(point, {across.c_str()})) - columns.begin();
    map.cells[static_cast<std::size_t>(r)][static_cast<std::size_t>(c)] =
        cell_of(point, fmt::format("{} {}, {} {}", down, map.rows[static_cast<std::size_t>(r)],
                                   across, map.columns[static_cast<std::size_t>(c)]));
  }
  return map;
}

bool is_devices(const std::string& axis) { return axis == devices_key; }

std::string scaling_curves(const Json& points, const std::string& by) {
  const std::string across(devices_key);
  return curve(points, across, by, rate_shown) +
         curve(
             points, across, by,
             {"efficiency", "parallel efficiency, against the fewest devices", &efficiency_text}) +
         (std::ranges::any_of(points, is_knee)
              ? "<p class=\"note\">The larger dot is the knee: the number of devices with the "
                "greatest efficiency times speed-up (Eager, Zahorjan and Lazowska 1989).</p>\n"
              : "<p class=\"note\">No knee among these numbers of devices: efficiency times "
                "speed-up (Eager, Zahorjan and Lazowska 1989) is greatest at the most of "
                "them.</p>\n");
}

}  // namespace

std::vector<std::string> swept_axes(const Json& points) {
  std::vector<std::string> axes;
  if (!points.is_array() || points.empty() || !points.front().is_object()) return axes;
  std::size_t all = 1;
  for (const auto& [key, value] : points.front().items()) {
    if (key == "format_version" || key == "program") continue;  // with which printed rows begin
    if (is_result(key)) break;
    axes.push_back(key);
    all *= values_of(points, key).size();
  }
  // The last may be dp as a result: then not every combination is there, or it never changes.
  if (axes.size() < 2 || axes.back() != "dp") return axes;
  if (all != points.size() || values_of(points, "dp").size() == 1) axes.pop_back();
  return axes;
}

std::string curves_section(const Json& points) {
  const auto axes = swept_axes(points);
  if (points.size() < 2 || std::ranges::none_of(points, &is_known)) return "";
  std::string html;
  const bool served = is_served(points.front());
  if (served && axes.size() < 3) {
    const std::string by = axes.size() == 2 ? axes[1] : "";
    html = curve(points, axes[0], by, served_shown) + curve(points, axes[0], by, token_shown);
    const auto map = by.empty() ? std::nullopt : heat_map_of(points, axes[0], by);
    if (map) html += heat_map_html(*map);
  } else if (axes.size() == 1) {
    html =
        is_devices(axes[0]) ? scaling_curves(points, "") : curve(points, axes[0], "", time_shown);
  } else if (axes.size() == 2) {
    const auto devices = std::ranges::find_if(axes, is_devices);
    if (devices != axes.end()) html = scaling_curves(points, axes[devices == axes.begin() ? 1 : 0]);
    if (const auto map = heat_map_of(points, axes[0], axes[1])) html += heat_map_html(*map);
  }
  const char* title = axes.size() == 1 ? "The curve" : "The map";
  if (std::ranges::any_of(axes, is_devices)) title = "How it scales";
  if (served) title = "The curves";
  return section(title, html);
}

std::string sweep_svg(const std::string& json) {
  const Json points = costmodel::own_json(json);
  const auto axes = swept_axes(points);
  if (points.size() < 2 || std::ranges::none_of(points, &is_known)) return "";
  if (is_served(points.front()) && axes.size() < 3)
    return chart_svg(chart_of(points, axes[0], axes.size() == 2 ? axes[1] : "", served_shown));
  if (axes.size() == 1)
    return chart_svg(chart_of(points, axes[0], "", is_devices(axes[0]) ? rate_shown : time_shown));
  if (axes.size() != 2) return "";
  const auto devices = std::ranges::find_if(axes, is_devices);
  if (devices != axes.end()) {
    const std::size_t by = devices == axes.begin() ? 1 : 0;
    return chart_svg(chart_of(points, *devices, axes[by], rate_shown));
  }
  const auto map = heat_map_of(points, axes[0], axes[1]);
  return map ? heat_map_svg(*map) : "";
}

}  // namespace planner
