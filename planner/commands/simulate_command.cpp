#include "planner/commands/simulate_command.hpp"

#include <fmt/format.h>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/base/output_file.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/estimate/pipelines_together.hpp"
#include "costmodel/plan/plan_schedule.hpp"
#include "costmodel/plan/plan_text.hpp"
#include "costmodel/schedule/chrome_trace.hpp"
#include "planner/page/json_page.hpp"
#include "planner/page/json_schedule_page.hpp"
#include "planner/report/json_report.hpp"
#include "planner/report/schedule_comparison.hpp"

namespace planner {

using namespace costmodel;

namespace {

// Ranks that do not wait for one another between iterations end one each sooner than the timeline.
std::string times_text(const Estimate& e, const Timeline& timeline) {
  const bool together = timeline.end() <= e.iteration * (1 + 1e-9);
  const std::string apart =
      together ? ""
               : fmt::format(
                     " of a rank ({} from the first start to the last end: ranks do not wait "
                     "for one another between iterations)",
                     format_seconds(timeline.end()));
  return fmt::format("{} from start to end{}; bubble {:.1f} % of the slowest stage's work\n",
                     format_seconds(e.iteration), apart, 100 * e.bubble_fraction);
}

// The note that it is written.
std::string written_schedule(const std::string& file, const ParallelPlan& plan,
                             Evaluator& evaluator) {
  const PlacedPipelines pipelines(plan, evaluator);
  if (pipelines.size() > 1) {
    throw ConfigError({}, "replicas of unequal shares have a schedule each",
                      "leave --write-schedule out, or plan.replicas");
  }
  if (plan.ways() > 1) {
    throw ConfigError(
        {}, fmt::format("a file has each stage on one rank, and {} on two", schedule_text(plan)),
        "leave --write-schedule out, or set plan.schedule: dualpipe-v");
  }
  const auto& [pipeline, its] = pipelines[0];
  const PlanCost& cost = its->cost(pipeline.plan);
  const auto schedule = schedule_of(pipeline.plan, cost.micro_batches, cost.times, cost.shares);
  write_file(file, file.ends_with(".csv") ? to_csv(schedule) : to_text(schedule));
  return "schedule written to " + shell_word(file) + " (plan.schedule: {file: ...} reads it)";
}

// All schedules instead of the plan's.
CommandResult comparison(const Session& session, const Scenario& s, const ParallelPlan& plan) {
  const Options& options = session.options;
  refuse_if(!options.trace.empty() || !options.write_schedule.empty(),
            "--compare has all schedules, a file has one",
            "leave --trace and --write-schedule out, or --compare");
  const auto schedules = compared_schedules(s, plan);
  CommandResult result;
  if (wants_page(options))
    result.page = schedule_page(schedules_json(schedules), schedules, s, plan);
  if (options.format == Format::json) {
    result.text = schedules_json(schedules);
  } else {
    result.text = heading(s, session.style) + "\n" + escaped(to_string(plan), session.style) +
                  "\n\n" + schedule_comparison(schedules, session.style.style.width);
  }
  return result;
}

}  // namespace

CommandResult simulate_command(const Session& session) {
  Scenario s = load(session);
  const auto settled = settled_plan(s, threads_of(session.options));
  if (!settled) return without_plan(session, s);
  const auto& plan = settled->plan;
  if (session.options.compare_schedules) {
    if (!plan.even()) {
      throw ConfigError({}, "stages or replicas of their own have no other schedules",
                        "leave --compare out, or plan.stages and plan.replicas");
    }
    return comparison(session, s, plan);
  }
  Evaluator evaluator = evaluator_of(s);
  const auto timeline = evaluator.timeline(plan);
  const auto estimate = evaluator.estimate(plan);
  const IterationFigures figures{estimate.iteration, estimate.bubble_fraction};
  CommandResult result;
  result.warnings = plan_warnings(session.options, s, estimate);
  for (const auto& note : note_lines(settled->notes)) result.warnings.push_back(note);
  if (!session.options.trace.empty()) {
    write_file(session.options.trace, to_chrome_trace(timeline, figures));
    result.warnings.push_back("trace written to " + shell_word(session.options.trace) +
                              " (open it in ui.perfetto.dev)");
    const std::string left_out = left_out_of_trace(timeline);
    if (!left_out.empty()) result.warnings.push_back(left_out);
  }
  if (!session.options.write_schedule.empty()) {
    result.warnings.push_back(written_schedule(session.options.write_schedule, plan, evaluator));
  }
  if (wants_page(session.options))
    result.page = page_html(estimate_json(estimate, s), s, {timeline, {}});
  if (session.options.format == Format::json) {
    result.text = to_chrome_trace(timeline, figures);
    return result;
  }
  result.text = heading(s, session.style) + "\n" + escaped(to_string(plan), session.style) + "\n\n";
  result.text += times_text(estimate, timeline);
  result.text +=
      fmt::format("f forward, B {}, {}d data parallel, o optimizer, . idle\n",
                  splits_backward(plan.schedule) ? "input gradient, w weight gradient" : "backward",
                  overlaps(plan.schedule) ? "x forward and backward together, " : "");
  const int columns = chart_columns(session.style.style.width);
  result.text += chart_note(timeline, columns) + to_chart(timeline, columns);
  return result;
}

}  // namespace planner
