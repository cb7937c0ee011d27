#include "planner/commands/sweep.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "costmodel/base/error.hpp"
#include "costmodel/base/parallel_for.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/config/override.hpp"
#include "costmodel/config/yaml.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/plan/plan_text.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/commands/interruption.hpp"
#include "planner/commands/plan_warnings.hpp"
#include "planner/commands/serving_commands.hpp"
#include "planner/commands/serving_tables.hpp"
#include "planner/commands/weak_scaling.hpp"
#include "planner/page/json_curves.hpp"
#include "planner/page/json_page.hpp"
#include "planner/report/json_report.hpp"
#include "planner/report/scaling.hpp"
#include "planner/search/settled_plan.hpp"

namespace planner {

using costmodel::ConfigError;
using costmodel::Estimate;
using costmodel::mark_of_argument;
using costmodel::Scenario;

namespace {

// Apart at commas that stand in no bracket.
std::vector<std::string> split_values(const std::string& text) {
  std::vector<std::string> values(1);
  int depth = 0;
  for (const char c : text) {
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (c == ',' && depth == 0) {
      values.emplace_back();
    } else {
      values.back() += c;
    }
  }
  return values;
}

}  // namespace

Axis parse_axis(const std::string& over) {
  const auto equals = over.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == over.size()) {
    throw ConfigError(mark_of_argument("--over", over), "is not KEY=A,B,...",
                      "example: --over tp=1,2,4,8");
  }
  Axis axis;
  axis.path = over.substr(0, equals);
  constexpr std::array maps{"model", "cluster", "training", "plan"};
  const bool whole = std::ranges::count(maps, axis.path) > 0;
  if (!whole && axis.path.find('.') == std::string::npos) axis.path = "plan." + axis.path;
  axis.values = split_values(over.substr(equals + 1));
  const bool one_list =
      axis.values.size() == 1 && axis.values[0].starts_with('[') && axis.values[0].ends_with(']');
  if (one_list) axis.values = split_values(axis.values[0].substr(1, axis.values[0].size() - 2));
  for (const auto& value : axis.values) {
    if (value.find_first_not_of(' ') != std::string::npos) continue;
    throw ConfigError(mark_of_argument("--over", over), "has an empty value",
                      "example: --over tp=1,2,4,8");
  }
  return axis;
}

std::vector<Axis> axes_of(const Options& options) {
  std::vector<Axis> axes;
  std::size_t points = 1;
  for (const auto& over : options.over) {
    axes.push_back(parse_axis(over));
    points *= axes.back().values.size();
    if (points > 1'000'000) {
      throw ConfigError({"--over", 0, 0}, "asks for more than a million points",
                        "sweep fewer values");
    }
  }
  if (axes.empty())
    throw ConfigError({}, "shardplan: 'sweep' has nothing to vary", "add --over tp=1,2,4,8");
  return axes;
}

std::vector<std::string> place(const std::vector<Axis>& axes, std::size_t point,
                               costmodel::Value& value) {
  std::size_t stride = 1;
  for (const Axis& axis : axes) stride *= axis.values.size();
  std::vector<std::string> row;
  for (const Axis& axis : axes) {
    stride /= axis.values.size();
    const std::string& chosen = axis.values[point / stride];
    point %= stride;
    assign_path(value, axis.path + "=" + chosen, mark_of_argument("--over", axis.path));
    row.push_back(chosen);
  }
  return row;
}

namespace {

// A point's results, and its plan.
struct Point {
  std::vector<std::string> cells;  // those of `titles`, and the error
  std::string plan;
  bool searched = false;     // keys of it were left to the search
  bool none_fits = false;    // ... which found none within the memory that it may use
  ScalingPoint scales = {};  // where devices are swept
};

const std::array<Column, 8> titles{{{"dp", true, 3},
                                    {"m", true, 3},
                                    {"iteration_s", true, 0},
                                    {"tokens_per_s", true, 2},
                                    {"mfu", true, 2},
                                    {"bubble", true, 3},
                                    {"peak_gib"},
                                    {"fits", true, 0}}};

Point failed(const std::string& why, bool searched) {
  std::vector<std::string> cells(titles.size());
  cells.push_back(why);
  return {cells, "", searched};
}

Point result_of(const Scenario& scenario, int threads) {
  const bool searched = !scenario.plan.automatic.empty();
  const auto settled = settled_plan(scenario, threads);
  if (!settled) return failed(no_valid_choice, searched);
  costmodel::Evaluator evaluator(scenario.model, scenario.cluster, scenario.training);
  const Estimate e = evaluator.estimate(settled->plan);
  Point point{{fmt::format("{}", e.plan.dp), fmt::format("{}", e.micro_batches),
               fmt::format("{:.6g}", e.iteration.value), fmt::format("{:.6g}", e.tokens_per_s),
               fmt::format("{:.4f}", e.mfu), fmt::format("{:.4f}", e.bubble_fraction),
               fmt::format("{:.2f}", e.peak.value / (1 << 30)), e.fits() ? "true" : "false", ""},
              to_string(e.plan),
              searched,
              settled->nothing_fits};
  point.scales.devices = scenario.cluster.devices;
  if (e.fits() && !point.none_fits) point.scales.tokens_per_s = e.tokens_per_s;
  return point;
}

bool has_plan(const costmodel::Value& scenario) {
  const costmodel::Value* plan = scenario.find("plan");
  return plan != nullptr && (plan->is_scalar() || !plan->entries.empty());
}

// Speed-up and efficiency of the points that differ in devices alone.
void scale(const std::vector<Axis>& axes, const std::vector<std::vector<std::string>>& values,
           std::vector<Point>& points) {
  const auto devices = std::ranges::find(axes, devices_path, &Axis::path) - axes.begin();
  std::map<std::vector<std::string>, std::vector<std::size_t>> curves;
  for (std::size_t i = 0; i < points.size(); ++i) {
    auto others = values[i];
    others.erase(others.begin() + devices);
    curves[others].push_back(i);
  }
  for (const auto& [others, members] : curves) {
    std::vector<ScalingPoint> curve;
    for (const std::size_t i : members) curve.push_back(points[i].scales);
    fill_scaling(curve);
    for (std::size_t i = 0; i < members.size(); ++i) points[members[i]].scales = curve[i];
  }
}

std::vector<std::string> scaling_cells(const ScalingPoint& point) {
  if (!point.speedup) return {"", "", ""};
  return {fmt::format("{:.4f}", *point.speedup), fmt::format("{:.4f}", *point.efficiency),
          point.knee ? "true" : "false"};
}

// The table, with the column of plans where `tell_plans`. Its dp is the plan's, unless it is swept:
// then the axis tells it.
Table table_of(const std::vector<Axis>& axes, const std::vector<std::vector<std::string>>& values,
               const std::vector<Point>& points, bool tell_plans) {
  Table table;
  const bool scales = has_axis(axes, devices_path);
  const std::size_t first = has_axis(axes, "plan.dp") ? 1 : 0;
  for (const Axis& axis : axes) {
    table.columns.push_back(
        {axis.path.rfind("plan.", 0) == 0 ? axis.path.substr(5) : axis.path, true, 0});
  }
  table.columns.insert(table.columns.end(), titles.begin() + static_cast<std::ptrdiff_t>(first),
                       titles.end());
  if (scales)
    for (const char* title : {"speedup", "efficiency", "knee"}) table.columns.push_back({title});
  if (tell_plans) table.columns.push_back({"plan", false});
  table.columns.push_back({"error", false, 0});
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto& cells = points[i].cells;
    std::vector<std::string> row = values[i];
    row.insert(row.end(), cells.begin() + static_cast<std::ptrdiff_t>(first), cells.end() - 1);
    if (scales) std::ranges::copy(scaling_cells(points[i].scales), std::back_inserter(row));
    if (tell_plans) row.push_back(points[i].plan);
    row.push_back(cells.back());
    table.rows.push_back(std::move(row));
  }
  return table;
}

// What a reader must know of a curve over devices.
std::string knee_note(const std::vector<Point>& points) {
  std::vector<std::string> knees;
  for (const Point& point : points) {
    if (!point.scales.knee) continue;
    knees.push_back(fmt::format("{} devices ({:.0f} % parallel efficiency)",
                                costmodel::format_integer(point.scales.devices),
                                100 * *point.scales.efficiency));
  }
  const bool any = std::ranges::any_of(
      points, [](const Point& point) { return point.scales.speedup.has_value(); });
  if (!any) return "";
  if (knees.empty()) {
    return "no knee among these numbers of devices: efficiency times speed-up is greatest at the "
           "most of them, or too few have a plan that fits";
  }
  return fmt::format(
      "the knee, where efficiency times speed-up is greatest (Eager, Zahorjan and Lazowska 1989): "
      "{}",
      fmt::join(knees, ", "));
}

// What the column `plan` has, where the scenario does not say it.
void note_plans(const std::vector<Point>& points, bool given, std::vector<std::string>& notes) {
  const auto searched = std::ranges::count(points, true, &Point::searched);
  if (searched > 0) {
    notes.emplace_back(
        "keys of the plan that are auto were searched at every point, as `plan` does, which leaves "
        "search.memory_margin free: the column `plan` has what was chosen");
  } else if (!given) {
    notes.emplace_back(
        "the scenario has no plan: what is not swept takes its default, and the column `plan` has "
        "the result. To search every point: --set plan=auto");
  }
  const auto none = std::ranges::count(points, true, &Point::none_fits);
  if (none == 0) return;
  notes.push_back(fmt::format(
      "at {} of {} points no plan leaves so much free: their rows have the one that needs least",
      none, searched));
}

// The points of a sweep, in blocks: a block is read point by point, for configurations are not read
// by several threads, and then evaluated on all of them.
class Sweep {
 public:
  Sweep(const std::string& file, const costmodel::ConfigPath& path, const Options& options,
        const std::function<bool()>& stopped)
      : file_(file), path_(path), stopped_(stopped), threads_(threads_of(options)) {
    axes = axes_of(options);
    for (const Axis& axis : axes) count_ *= axis.values.size();
    root = loaded(path, file);
    for (const auto& assignment : options.assignments)
      assign_path(root, assignment, mark_of_argument("--set", assignment));
    if (options.weak) weak_.emplace(axes, root);
  }

  // Once stopped, the points before the first that is missing.
  void run() {
    constexpr std::size_t together = 64;
    while (points.size() < count_ && !over()) {
      std::vector<std::optional<Scenario>> scenarios(std::min(together, count_ - points.size()));
      const std::size_t first = points.size();
      for (auto& scenario : scenarios) scenario = read(points.size());
      std::vector<char> done(scenarios.size(), 0);
      const auto each = std::max<int>(1, threads_ / static_cast<int>(scenarios.size()));
      costmodel::share_out(scenarios.size(), threads_, [&](std::size_t i) {
        if (scenarios[i] && over()) return;
        if (scenarios[i]) evaluate(*scenarios[i], each, points[first + i]);
        done[i] = 1;
      });
      const auto missing = std::ranges::find(done, 0) - done.begin();
      points.resize(first + static_cast<std::size_t>(missing));
      values.resize(points.size());
    }
  }

  std::vector<Axis> axes;
  costmodel::Value root;
  std::vector<std::vector<std::string>> values;
  std::vector<Point> points;
  std::size_t bad = 0;  // that cannot be read; a batch that does not divide is no bad input

 private:
  bool over() const { return stopped_ && stopped_(); }

  // Adds the point: one that cannot be read says why.
  std::optional<Scenario> read(std::size_t i) {
    costmodel::Value value = root;
    values.push_back(place(axes, i, value));
    points.emplace_back();
    bool placed = false;
    try {
      if (weak_) weak_->place(values.back(), value);
      placed = true;
      return costmodel::read_scenario(value, file_, path_);
    } catch (const ConfigError& fault) {
      // If no point can be read, the axis or the scenario is wrong.
      if (++unread_ == count_) throw;
      if (placed) ++bad;
      points.back() = failed(fault.what(), false);
      return {};
    }
  }

  static void evaluate(const Scenario& scenario, int threads, Point& point) {
    try {
      point = result_of(scenario, threads);
    } catch (const ConfigError& fault) {
      point = failed(fault.what(), !scenario.plan.automatic.empty());
    }
  }

  const std::string& file_;
  const costmodel::ConfigPath& path_;
  const std::function<bool()>& stopped_;
  int threads_;
  std::size_t count_ = 1, unread_ = 0;
  std::optional<WeakScaling> weak_;
};

}  // namespace

Swept sweep(const std::string& file, const costmodel::ConfigPath& path, const Options& options,
            const std::function<bool()>& stopped) {
  Sweep all(file, path, options, stopped);
  all.run();
  auto& points = all.points;
  const bool searched = std::ranges::count(points, true, &Point::searched) > 0;
  const bool given = has_plan(all.root);
  if (has_axis(all.axes, devices_path)) scale(all.axes, all.values, points);
  Swept swept{table_of(all.axes, all.values, points, searched || !given), {}, all.bad};
  note_plans(points, given, swept.notes);
  if (const auto note = knee_note(points); !note.empty()) swept.notes.push_back(note);
  return swept;
}

bool any_answer(const Table& swept) {
  return std::any_of(swept.rows.begin(), swept.rows.end(),
                     [](const auto& row) { return row.back().empty(); });
}

CommandResult sweep_command(const Session& session) {
  const std::string file = file_of(session);
  loaded(session.path, file);  // an input is no output
  require_outputs(session.options);
  const Interruption interruption;
  const Swept swept = is_serving(session)
                          ? sweep_serving(session, interruption.poll())
                          : sweep(file, session.path, session.options, interruption.poll());
  const Table& points = swept.table;
  const int status = swept.unreadable > 0 ? bad_input : any_answer(points) ? 0 : no_answer;
  CommandResult result{status, printed(points, session.options.format, session.style.style.width),
                       note_lines(swept.notes)};
  if (session.options.format == Format::svg) {
    result.text = sweep_svg(rows_json(points));
    if (result.text.empty()) {
      throw ConfigError({},
                        "shardplan: there is no picture of more than two keys, of one point, or "
                        "where nothing fits",
                        "choose --format text, json, csv, md or html");
    }
  }
  if (wants_page(session.options)) {
    result.page = page_html(rows_json(points),
                            fmt::format("Sweep of {} over {}", session.options.operands.front(),
                                        fmt::join(session.options.over, ", ")),
                            swept.notes);
  }
  if (interruption.came()) {
    interruption.tell(fmt::format("sweep: {}: the first {} points are reported",
                                  interruption.text(), points.rows.size()),
                      result);
  }
  return result;
}

}  // namespace planner
