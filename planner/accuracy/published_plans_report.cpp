#include "planner/accuracy/published_plans_report.hpp"

#include <fmt/format.h>

#include <set>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/plan/plan_text.hpp"
#include "planner/accuracy/scorecard.hpp"

namespace planner {

using costmodel::Estimate;

namespace {

std::string seconds(double v) { return fmt::format("{:.4g}", v); }
std::string count(int n) { return fmt::format("{}", n); }

std::set<std::string> sources_of(const ExpertComparison& c) {
  std::set<std::string> names;
  for (const auto& run : c.runs) names.insert(run.source);
  return names;
}

Table source_table(const ExpertComparison& c) {
  Table t{
      {left("source"), "runs", "at least as fast", "slower", "median gain %", "largest gain %"}};
  const auto add = [&t](const std::string& name, const ComparisonFigures& f) {
    if (f.runs == 0) return;
    t.rows.push_back({name, count(f.runs), count(f.as_fast), count(f.slower),
                      one_decimal(f.median_gain_pct), one_decimal(f.largest_gain_pct)});
  };
  for (const auto& source : sources_of(c)) add(source, figures_of(c, source));
  add("all runs", figures_of(c));
  return t;
}

Table slower_table(const ExpertComparison& c) {
  Table t{{left("run"), "its own s", "planner's s", "slower %", left("remark")}};
  for (const ExpertRun* run : slower_runs(c)) {
    const ExpertWorkload& w = c.workloads[run->workload];
    const Estimate* best = w.best();
    const double own = run->own->iteration.value;
    t.rows.push_back(
        {run->id, seconds(own), best != nullptr ? seconds(best->iteration.value) : "",
         best != nullptr ? fmt::format("{:.2f}", 100 * (best->iteration.value / own - 1)) : "",
         !run->own->fits() ? "its own is predicted not to fit"
         : best == nullptr ? w.error
                           : ""});
  }
  return t;
}

Table not_compared(const ExpertComparison& c) {
  Table t{{left("run"), left("why")}};
  for (const auto& run : c.runs) {
    if (!run.own) t.rows.push_back({run.id, without_place(run.error)});
  }
  return t;
}

// The runs of a workload, then the planner's plans for it.
void add_workload(const ExpertComparison& c, std::size_t at, Table& t) {
  const ExpertWorkload& w = c.workloads[at];
  bool first = true;
  const auto add = [&](const std::string& whose, const std::string& measured, const Estimate& e,
                       const std::string& gain) {
    t.rows.push_back({first ? w.model : "", first ? w.rest : "", whose, to_string(e.plan), measured,
                      seconds(e.iteration.value), gain});
    first = false;
  };
  const Estimate* fastest = nullptr;
  for (const auto& run : c.runs) {
    if (run.workload != at || !run.own) continue;
    add(run.id, run.measured ? seconds(*run.measured) : "", *run.own, "");
    if (fastest == nullptr || run.own->iteration < fastest->iteration) fastest = &*run.own;
  }
  if (fastest == nullptr) return;
  const auto gain = [&](const Estimate& e) {
    return one_decimal(100 * (1 - e.iteration / fastest->iteration));
  };
  if (w.even) add("planner, even stages", "", *w.even, gain(*w.even));
  if (w.any) add("planner, any layout", "", *w.any, gain(*w.any));
}

Table workload_table(const ExpertComparison& c) {
  Table t{{left("model"), left("on"), left("run"), left("plan"), "measured s", "predicted s",
           "gain %"}};
  for (std::size_t at = 0; at < c.workloads.size(); ++at) add_workload(c, at, t);
  return t;
}

// Lines of at most 100 characters.
std::vector<std::string> sentences(const ExpertComparison& c) {
  const ComparisonFigures f = figures_of(c);
  return {
      fmt::format("The planner's best is predicted at least as fast (within {:g} %) as {} of {} "
                  "plans that were run.",
                  equal_pct, f.as_fast, f.runs),
      fmt::format("It saves {:.1f} % of the predicted time in the median, {:.1f} % at most; {} "
                  "searches of {}.",
                  f.median_gain_pct, f.largest_gain_pct, c.workloads.size(),
                  c.layouts ? "any layout" : "even stages"),
      "Model, devices, batch and software are the run's, so are cp and ep above 1; the rest is "
      "free.",
      "Nobody ran the planner's plans: where the model errs, the best of many plans errs in its "
      "favour."};
}

}  // namespace

std::string expert_report(const ExpertComparison& c, bool every_run, const ReportStyle& style) {
  const bool markdown = style.markup == Markup::markdown;
  std::string text = markdown ? "## The planner beside the plans that were run\n\n" : "";
  for (const auto& line : sentences(c)) text += (markdown ? "- " : "") + line + "\n";
  const auto add = [&](const std::string& title, const Table& table) {
    if (table.rows.empty()) return;
    text += table_section(title, table, style);
  };
  add("By source", source_table(c));
  add("The planner's best is slower", slower_table(c));
  if (every_run) add("By workload (gain: over the run predicted fastest)", workload_table(c));
  add("Not compared", not_compared(c));
  return text;
}

Table expert_rows(const ExpertComparison& c) {
  Table t{{left("id"), left("source"), left("model"), left("on"), left("plan"), "measured_s",
           "predicted_s", "fits", left("planner_plan"), "planner_s", "gain_pct", left("error")}};
  for (const auto& run : c.runs) {
    const ExpertWorkload* w = run.own ? &c.workloads[run.workload] : nullptr;
    const Estimate* best = w != nullptr ? w->best() : nullptr;
    const auto gain = c.gain_pct(run);
    const auto number = [](bool told, double v) {
      return told ? fmt::format("{:.6g}", v) : std::string();
    };
    t.rows.push_back({run.id, run.source, w != nullptr ? w->model : "", w != nullptr ? w->rest : "",
                      run.own ? to_string(run.own->plan) : "",
                      number(run.measured.has_value(), run.measured.value_or(0)),
                      number(run.own.has_value(), run.own ? run.own->iteration.value : 0),
                      run.own ? (run.own->fits() ? "true" : "false") : "",
                      best != nullptr ? to_string(best->plan) : "",
                      number(best != nullptr, best != nullptr ? best->iteration.value : 0),
                      number(gain.has_value(), gain.value_or(0)),
                      w != nullptr ? w->error : run.error});
  }
  return t;
}

}  // namespace planner
