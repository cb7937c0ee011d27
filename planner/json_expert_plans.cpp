// The JSON of `validate --against-planner`.
#include <nlohmann/json.hpp>
#include <set>

#include "planner/expert_report.hpp"
#include "planner/json_plan.hpp"

namespace planner {

using costmodel::Estimate;
using Json = nlohmann::ordered_json;

namespace {

Json priced_json(const std::optional<Estimate>& e) {
  if (!e) return {};
  return {{"iteration_s", e->iteration.value}, {"plan", told_plan(*e)}};
}

Json figures_json(const ComparisonFigures& f) {
  return {{"runs", f.runs},
          {"as_fast", f.as_fast},
          {"slower", f.slower},
          {"median_gain_pct", f.median_gain_pct},
          {"smallest_gain_pct", f.smallest_gain_pct},
          {"largest_gain_pct", f.largest_gain_pct}};
}

Json run_json(const ExpertRun& run, const ExpertComparison& c) {
  Json json{{"id", run.id}, {"source", run.source}};
  if (run.measured) json["measured_s"] = *run.measured;
  if (!run.own) {
    json["error"] = run.error;
    return json;
  }
  json["workload"] = run.workload;
  json["predicted_s"] = run.own->iteration.value;
  json["fits"] = run.own->fits();
  json["plan"] = told_plan(*run.own);
  const Estimate* best = c.workloads[run.workload].best();
  const auto gain = c.gain_pct(run);
  json["planner_s"] = best != nullptr ? Json(best->iteration.value) : Json();
  json["gain_pct"] = gain ? Json(*gain) : Json();
  return json;
}

Json workload_json(const ExpertWorkload& w, bool layouts) {
  Json json{{"model", w.model}, {"on", w.rest}, {"even_stages", priced_json(w.even)}};
  if (layouts) json["any_layout"] = priced_json(w.any);
  if (!w.error.empty()) json["error"] = w.error;
  return json;
}

}  // namespace

std::string expert_json(const ExpertComparison& c) {
  Json runs = Json::array(), workloads = Json::array(), slower = Json::array();
  Json by_source = Json::object();
  std::set<std::string> sources;
  for (const auto& run : c.runs) {
    runs.push_back(run_json(run, c));
    sources.insert(run.source);
  }
  for (const auto& w : c.workloads) workloads.push_back(workload_json(w, c.layouts));
  for (const auto* run : slower_runs(c)) slower.push_back(run->id);
  for (const auto& source : sources) by_source[source] = figures_json(figures_of(c, source));
  Json summary = figures_json(figures_of(c));
  summary["equal_within_pct"] = equal_pct;
  summary["slower_runs"] = slower;
  summary["by_source"] = by_source;
  return Json{{"runs", runs}, {"workloads", workloads}, {"summary", summary}}.dump(2) + "\n";
}

}  // namespace planner
