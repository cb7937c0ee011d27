#include "planner/commands/sweep.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "costmodel/base/error.hpp"
#include "costmodel/base/fingerprint.hpp"
#include "costmodel/base/input_file.hpp"
#include "costmodel/base/parallel_for.hpp"
#include "costmodel/base/path.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/config/override.hpp"
#include "costmodel/config/yaml.hpp"
#include "costmodel/estimate/plan_estimate.hpp"
#include "costmodel/plan/plan_text.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "costmodel/serving/serving_reader.hpp"
#include "planner/commands/interruption.hpp"
#include "planner/page/json_curves.hpp"
#include "planner/page/json_page.hpp"
#include "planner/report/json_report.hpp"
#include "planner/report/serving_comparison.hpp"
#include "planner/report/serving_report.hpp"
#include "planner/search/settled_plan.hpp"

namespace planner {

using namespace costmodel;

namespace {

std::vector<Column> titles() {
  return {{"dp", true, 3},
          {"m", true, 3},
          {"iteration_s", true, 0, "{:.6g}"},
          {"tokens_per_s", true, 2, "{:.6g}"},
          {"mfu", true, 2, "{:.4f}"},
          {"bubble", true, 3, "{:.4f}"},
          {"peak_gib", true, 1, "{:.2f}"},
          {"fits", true, 0},
          {"fits_probability", true, 1, "{:.4f}"}};
}

SweptPoint failed(const std::string& why, bool searched) {
  return {.cells = {}, .plan = {}, .error = why, .searched = searched};
}

SweptPoint result_of(const Scenario& scenario, int threads) {
  const bool searched = !scenario.plan.automatic.empty();
  const auto settled = settled_plan(scenario, threads);
  if (!settled) return failed(no_valid_choice, searched);
  const Estimate e =
      estimate_of(scenario.model, scenario.cluster, scenario.training, settled->plan);
  SweptPoint point{
      {fmt::format("{}", e.plan.dp), fmt::format("{}", e.micro_batches),
       fmt::format("{}", e.iteration.value), fmt::format("{}", e.tokens_per_s),
       fmt::format("{}", e.mfu), fmt::format("{}", e.bubble_fraction),
       fmt::format("{}", e.peak.value / (1 << 30)), e.fits() ? "true" : "false",
       fmt::format("{}", fits_probability(e.peak, e.capacity, scenario.training.peak_errors))},
      to_string(e.plan)};
  point.searched = searched;
  point.none_fits = settled->nothing_fits;
  point.scales.devices = scenario.cluster.devices;
  if (e.fits() && !point.none_fits) point.scales.tokens_per_s = e.tokens_per_s;
  return point;
}

// The same, where a rule that the plan breaks is the point's error.
SweptPoint priced(const Scenario& scenario, int threads) {
  try {
    return result_of(scenario, threads);
  } catch (const ConfigError& fault) {
    return failed(fault.what(), !scenario.plan.automatic.empty());
  }
}

bool has_plan(const Value& scenario) {
  const Value* plan = scenario.find("plan");
  return plan != nullptr && (plan->is_scalar() || !plan->entries.empty());
}

// Speed-up and efficiency of the points that differ in devices alone.
void scale(SweptPoints& swept) {
  auto& [axes, values, points, unreadable] = swept;
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
  return {fmt::format("{}", *point.speedup), fmt::format("{}", *point.efficiency),
          point.knee ? "true" : "false"};
}

// The columns of training. A plan's dp is left out where it is swept, for the axis has it; where
// devices are, speed-up and efficiency are added.
Table table_of(SweptPoints& swept, bool with_plans) {
  std::vector<Column> columns = titles();
  const bool axis_has_dp = has_axis(swept.axes, "plan.dp");
  const bool scales = has_axis(swept.axes, devices_path);
  if (axis_has_dp) columns.erase(columns.begin());
  if (scales) {
    for (const char* title : {"speedup", "efficiency", "knee"})
      columns.push_back({title, true, 1, "{:.4f}"});
  }
  for (SweptPoint& point : swept.points) {
    if (point.cells.empty()) continue;
    if (axis_has_dp) point.cells.erase(point.cells.begin());
    if (scales) std::ranges::copy(scaling_cells(point.scales), std::back_inserter(point.cells));
  }
  return sweep_table(swept, columns, with_plans);
}

// What a reader must know of a curve over devices.
std::string knee_note(const std::vector<SweptPoint>& points) {
  std::vector<std::string> knees;
  for (const SweptPoint& point : points) {
    if (!point.scales.knee) continue;
    knees.push_back(fmt::format("{} devices ({:.0f} % parallel efficiency)",
                                format_integer(point.scales.devices),
                                100 * *point.scales.efficiency));
  }
  const bool any = std::ranges::any_of(
      points, [](const SweptPoint& point) { return point.scales.speedup.has_value(); });
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
void note_plans(const std::vector<SweptPoint>& points, bool given,
                std::vector<std::string>& notes) {
  const auto searched = std::ranges::count(points, true, &SweptPoint::searched);
  if (searched > 0) {
    notes.emplace_back(
        "keys of the plan that are auto were searched at every point, as `plan` does, which leaves "
        "search.memory_margin free: the column `plan` has what was chosen");
  } else if (!given) {
    notes.emplace_back(
        "the scenario has no plan: what is not swept takes its default, and the column `plan` has "
        "the result. To search every point: --set plan=auto");
  }
  const auto none = std::ranges::count(points, true, &SweptPoint::none_fits);
  if (none == 0) return;
  notes.push_back(fmt::format(
      "at {} of {} points no plan leaves so much free: their rows have the one that needs least",
      none, searched));
}

// The points of a sweep, in blocks: a block is read point by point, for configurations are not read
// by several threads, and then priced on all of them.
class Sweep {
 public:
  Sweep(const Options& options, const SweptWorkload& workload, const std::function<bool()>& stopped)
      : workload_(workload),
        stopped_(stopped),
        threads_(threads_of(options)),
        shard_(options.shard),
        caller_(options.caller) {
    swept.axes = axes_of(options);
    std::size_t all = 1;
    for (const Axis& axis : swept.axes) all *= axis.values.size();
    count_ = (all + shard_.count - shard_.index) / shard_.count;
    if (caller_ != nullptr) caller_->points = count_;
    if (options.journal.empty()) return;
    kept_.emplace(options.journal, shard_);
    program_ = file_fingerprint(caller_ != nullptr ? caller_->program : program_file());
  }

  // Once stopped, the points before the first that is missing.
  void run() {
    constexpr std::size_t together = 64;
    auto& points = swept.points;
    while (points.size() < count_ && !over()) {
      std::vector<PricedPoint> block(std::min(together, count_ - points.size()));
      const std::size_t first = points.size();
      keys_.clear();
      for (PricedPoint& point : block) point = read(points.size());
      std::vector<char> done(block.size(), 0);
      const auto each = std::max<int>(1, threads_ / static_cast<int>(block.size()));
      share_out(block.size(), threads_, [&](std::size_t i) {
        if (block[i] && over()) return;
        if (block[i]) points[first + i] = block[i](each);
        done[i] = 1;
        if (caller_ != nullptr) ++caller_->done;
      });
      keep(first, block, done);
      const auto missing = std::ranges::find(done, 0) - done.begin();
      points.resize(first + static_cast<std::size_t>(missing));
      swept.values.resize(points.size());
    }
  }

  SweptPoints swept;

 private:
  bool over() const { return stopped_ && stopped_(); }

  // Adds the point: one that cannot be read says why, and has nothing to be priced, as has one that
  // is kept.
  PricedPoint read(std::size_t i) {
    Value value = workload_.root;
    swept.values.push_back(place(swept.axes, i * shard_.count + shard_.index - 1, value));
    swept.points.emplace_back();
    keys_.emplace_back();
    bool adjusted = false;
    try {
      if (workload_.adjust) workload_.adjust(swept.values.back(), value);
      adjusted = true;
      PricedPoint priced = workload_.read(value);
      if (!kept_) return priced;
      keys_.back() = fingerprint(program_ + "\n" + to_yaml(value));
      const SweptPoint* const before = kept_->find(keys_.back());
      if (before == nullptr) return priced;
      swept.points.back() = *before;
      return {};
    } catch (const ConfigError& fault) {
      // If no point can be read, the axis or the scenario is wrong.
      if (++unread_ == count_) throw;
      if (adjusted) ++swept.unreadable;
      swept.points.back() = failed(fault.what(), false);
      return {};
    }
  }

  // Keeps the points of a block that were priced now.
  void keep(std::size_t first, const std::vector<PricedPoint>& block,
            const std::vector<char>& done) {
    if (!kept_) return;
    std::vector<std::pair<std::string, const SweptPoint*>> now;
    for (std::size_t i = 0; i < block.size(); ++i)
      if (block[i] && done[i] != 0) now.emplace_back(keys_[i], &swept.points[first + i]);
    kept_->add(now);
  }

  const SweptWorkload& workload_;
  const std::function<bool()>& stopped_;
  int threads_;
  Shard shard_;
  Caller* caller_;
  std::size_t count_ = 1, unread_ = 0;
  std::optional<KeptPoints> kept_;
  std::string program_;            // its fingerprint
  std::vector<std::string> keys_;  // of the points of a block that may be kept
};

}  // namespace

SweptPoints sweep_points(const Options& options, const SweptWorkload& workload,
                         const std::function<bool()>& stopped) {
  Sweep all(options, workload, stopped);
  all.run();
  return std::move(all.swept);
}

Table sweep_table(const SweptPoints& swept, const std::vector<Column>& columns, bool with_plans) {
  Table table;
  for (const Axis& axis : swept.axes) {
    table.columns.push_back(
        {axis.path.starts_with("plan.") ? axis.path.substr(5) : axis.path, true, 0});
  }
  table.columns.insert(table.columns.end(), columns.begin(), columns.end());
  if (with_plans) table.columns.push_back({"plan", false});
  table.columns.push_back({"error", false, 0});
  for (std::size_t i = 0; i < swept.points.size(); ++i) {
    const SweptPoint& point = swept.points[i];
    std::vector<std::string> row = swept.values[i];
    row.insert(row.end(), point.cells.begin(), point.cells.end());
    row.resize(swept.axes.size() + columns.size());
    if (with_plans) row.push_back(point.plan);
    row.push_back(point.error);
    table.rows.push_back(std::move(row));
  }
  return table;
}

Swept sweep(const std::string& file, const ConfigPath& path, const Options& options,
            const std::function<bool()>& stopped) {
  SweptWorkload training;
  training.root = loaded(path, file);
  for (const auto& assignment : options.assignments)
    assign_path(training.root, assignment, mark_of_argument("--set", assignment));
  training.read = [&](const Value& value) -> PricedPoint {
    return [s = read_scenario(value, file, path)](int threads) { return priced(s, threads); };
  };
  std::optional<WeakScaling> weak;
  if (options.weak) {
    weak.emplace(axes_of(options), training.root);
    training.adjust = [&](const auto& values, Value& value) { weak->place(values, value); };
  }
  SweptPoints swept = sweep_points(options, training, stopped);
  const auto& points = swept.points;
  const bool searched = std::ranges::count(points, true, &SweptPoint::searched) > 0;
  const bool given = has_plan(training.root);
  // Speed-ups are of all points.
  if (has_axis(swept.axes, devices_path) && options.shard.is_all()) scale(swept);
  Swept result{table_of(swept, searched || !given), {}, swept.unreadable};
  note_plans(points, given, result.notes);
  if (const auto note = knee_note(points); !note.empty()) result.notes.push_back(note);
  return result;
}

bool any_answer(const Table& swept) {
  return std::ranges::any_of(swept.rows, [](const auto& row) { return row.back().empty(); });
}

CommandResult sweep_command(const Session& session) {
  return sweep_result(session, [&](const std::function<bool()>& stopped) {
    return sweep(file_of(session), session.path, session.options, stopped);
  });
}

CommandResult sweep_result(const Session& session, const SweepUntil& sweep_until) {
  loaded(session.path, file_of(session));  // an input is no output
  require_outputs(session.options);
  const Interruption interruption(session.options);
  const Swept swept = sweep_until(interruption.poll());
  const Table& points = swept.table;
  const int status = swept.unreadable > 0 ? bad_input : any_answer(points) ? 0 : no_answer;
  CommandResult result{status, printed(points, session.options.format, session.style.style.width),
                       note_lines(swept.notes)};
  if (session.options.format == Format::svg) {
    result.text = sweep_svg(rows_json(points));
    refuse_if(result.text.empty(),
              "there is no picture of more than two keys, of one point, or where nothing fits",
              "choose --format text, json, csv, md or html");
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

namespace {

SweptPoint result_of(const ServingScenario& written) {
  SweptPoint point;
  point.searched = !written.plan.tp && !written.plan.pp && !written.plan.ep;
  const auto s = settled_serving(written);
  if (!s) {
    point.error = no_serving_plan;
    return point;
  }
  const ServingEstimate e = planned_estimate(*s);
  point.cells = served_cells(e);
  point.plan = fmt::format("{} · {}", plan_text(*s, e.sizes), to_string(e.weights));
  return point;
}

SweptPoint priced(const ServingScenario& written) {
  try {
    return result_of(written);
  } catch (const ConfigError& fault) {
    return {.cells = {}, .plan = {}, .error = fault.what()};
  }
}

}  // namespace

Swept sweep_serving(const Session& session, const std::function<bool()>& stopped) {
  const Options& options = session.options;
  refuse_training_flags(options);
  refuse_if(options.weak, "--weak goes with training, not with serving",
            "sweep serving.concurrency beside cluster.devices");
  const std::string file = file_of(session);
  SweptWorkload serving;
  serving.root = scenario_tree(file, session.path, options.assignments);
  serving.read = [&](const Value& value) -> PricedPoint {
    const std::string name = stem_of(file);
    return [s = read_serving(value, name, session.path)](int) { return priced(s); };
  };
  const SweptPoints swept = sweep_points(options, serving, stopped);
  std::vector<Column> columns;
  for (const auto& title : served_titles()) columns.push_back({title, true, 1, "{:.6g}"});
  Swept result{sweep_table(swept, columns, true), {}, swept.unreadable};
  if (std::ranges::any_of(swept.points, &SweptPoint::searched)) {
    result.notes.emplace_back(
        "the plan was searched at every point: the column `plan` has what was chosen");
  }
  return result;
}

CommandResult sweep_serving_command(const Session& session) {
  return sweep_result(session, [&](const std::function<bool()>& stopped) {
    return sweep_serving(session, stopped);
  });
}

}  // namespace planner
