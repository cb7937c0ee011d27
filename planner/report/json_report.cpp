#include "planner/report/json_report.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "costmodel/base/json_text.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/estimate/json_estimate.hpp"
#include "costmodel/scenario/residuals.hpp"
#include "planner/report/json_plan.hpp"
#include "planner/report/json_sharding.hpp"
#include "planner/report/plan_report.hpp"
#include "planner/report/strategy_text.hpp"

namespace planner {

using namespace costmodel;
using Json = nlohmann::ordered_json;

namespace {

Json searched_json(const SearchResult& r, std::optional<double> seconds) {
  const auto& n = r.statistics;
  return {{"configurations", n.configurations},
          {"feasible", n.feasible},
          {"pruned", n.pruned},
          {"seconds", seconds ? Json(*seconds) : Json()},
          {"evaluated", n.evaluated},
          {"simulated", n.simulated}};
}

Json certificate_json(const Strategies& all) {
  if (!all.interrupted.empty()) return {};
  const SearchResult& r = all.found;
  return {{"lower_bound_s", r.lower_bound.value},
          {"gap_pct", 100 * (r.plans.front().iteration / r.lower_bound - 1)}};
}

Json strategies_json(const Strategies& all, const StackSpec& stack) {
  const LayoutSearch& l = *all.layouts;
  Json json{{"grid", nullptr}, {"alpa", nullptr}, {"meshes", nullptr}};
  const auto told = [](const Estimate& e) {
    return Json{{"iteration_s", e.iteration.value}, {"plan", printed_plan(e)}};
  };
  if (!all.even.empty()) json["grid"] = told(all.even.front());
  if (!l.plans.empty()) json["alpa"] = told(l.plans.front());
  if (all.meshes) {
    const MeshSearch& own = *all.meshes;
    Json& meshes = json["meshes"] =
        own.plans.empty() ? Json{{"reason", own.reason}} : told(own.plans.front());
    meshes["certificate"] = mesh_certificate_json(own);
    meshes["searched"] = mesh_counts_json(own);
  }
  json["searched"] = {{"families", l.families},
                      {"opened", l.opened},
                      {"sliced", l.sliced},
                      {"improved", l.improved},
                      {"effort", l.effort},
                      {"effort_ran_out", l.spent},
                      {"time_ran_out", l.expired && !l.spent}};
  json["notes"] = strategy_sentences(all, stack);
  if (all.sharding) json["sharding"] = sharding_json(*all.sharding);
  return json;
}

// Null where the chosen plan is the fastest.
Json fastest_json(const Strategies& all, const Scenario& s) {
  if (!all.fastest) return {};
  const Estimate& e = *all.fastest;
  const Estimate& chosen = all.found.plans.front();
  return {{"iteration_s", e.iteration.value},
          {"faster_pct", 100 * (chosen.iteration / e.iteration - 1)},
          {"peak_bytes", e.peak.value},
          {"changes", plan_changes(chosen.plan, e.plan)},
          {"plan", printed_plan(e)},
          {"sentence", fastest_sentence(all, s)}};
}

Json front_json(const std::vector<Estimate>& front) {
  Json rows = Json::array();
  for (const Estimate& e : front) {
    rows.push_back({{"iteration_s", e.iteration.value},
                    {"peak_bytes", e.peak.value},
                    {"headroom_bytes", (e.capacity - e.peak).value},
                    {"plan", printed_plan(e)}});
  }
  return rows;
}

}  // namespace

nlohmann::ordered_json mesh_counts_json(const MeshSearch& found) {
  return {{"orders", found.orders},       {"batches", found.batches},
          {"ruled_out", found.ruled_out}, {"priced", found.priced},
          {"sliced", found.sliced},       {"simulated", found.simulated},
          {"improved", found.improved},   {"time_ran_out", found.expired}};
}

nlohmann::ordered_json mesh_certificate_json(const MeshSearch& found) {
  if (found.plans.empty() || !found.interrupted.empty()) return {};
  const double bound = found.lower_bound.value;
  const LeastBound& held = found.held_by;
  Json certificate{{"lower_bound_s", bound},
                   {"gap_pct", 100 * (found.plans.front().iteration.value / bound - 1)}};
  if (held.sequences > 0) {
    certificate["held_by"] = {{"stages", {held.least_stages, held.most_stages}},
                              {"sequences", held.sequences},
                              {"groups", held.order}};
  }
  return certificate;
}

std::string estimate_json(const Estimate& e, const Scenario& s) {
  return json_text(evaluation_json(e, s));
}

std::string search_json(const Strategies& all, const std::vector<Step>& steps, const Scenario& s,
                        std::optional<double> seconds, const std::vector<Estimate>& front) {
  const SearchResult& r = all.found;
  const Estimate& best = r.plans.front();
  Json json{{"scenario", s.name},
            {"searched", searched_json(r, seconds)},
            {"best", 0},
            {"certificate", certificate_json(all)},
            {"interrupted", !all.interrupted.empty()}};
  if (!all.interrupted.empty()) json["cause"] = interruption(all);
  Evaluator evaluator(s.model, s.cluster, s.training);
  json["reasons"] = reasons(best, busiest_rank(best, evaluator));
  json["fastest"] = fastest_json(all, s);
  if (all.layouts) json["strategies"] = strategies_json(all, s.training.stack);
  Json near = Json::array();
  for (const Step& step : steps) {
    Json row{{"knob", step.knob},
             {"change", step.change},
             {"fits", step.fits},
             {"iteration_s", step.iteration.value},
             {"peak_bytes", step.peak.value}};
    near.push_back(row);
  }
  json["one_step_away"] = near;
  if (!front.empty()) json["front"] = front_json(front);
  json["plans"] = Json::array();
  for (std::size_t i = 0; i < r.plans.size(); ++i) {
    Json entry = evaluation_json(r.plans[i], s);
    const auto faster_than = [&](const Estimate& other) {
      return Json(costmodel::probability_faster(r.plans[i].iteration.value, other.iteration.value,
                                                s.training.error_band.pair_spread));
    };
    entry["probability_faster_than_best"] = i > 0 ? faster_than(best) : Json();
    entry["probability_faster_than_next"] =
        i + 1 < r.plans.size() ? faster_than(r.plans[i + 1]) : Json();
    entry["against_best"] = i > 0 ? Json(difference(best, r.plans[i])) : Json();
    json["plans"].push_back(entry);
  }
  return json_text(json);
}

std::string failure_json(const SearchResult& r, const std::vector<std::string>& obstacles,
                         const std::vector<std::string>& remedies, const Scenario& s,
                         std::optional<double> seconds) {
  const Json json{{"scenario", s.name},     {"searched", searched_json(r, seconds)},
                  {"best", nullptr},        {"certificate", nullptr},
                  {"obstacles", obstacles}, {"remedies", remedies},
                  {"plans", Json::array()}};
  return json_text(json);
}

std::string unfinished_json(const Strategies& all, const Scenario& s,
                            std::optional<double> seconds) {
  const bool interrupted = !all.interrupted.empty();
  Json searched = searched_json(all.found, seconds);
  searched["time_ran_out"] = !interrupted;
  const Json json{
      {"scenario", s.name},     {"searched", searched},       {"best", nullptr},
      {"certificate", nullptr}, {"interrupted", interrupted}, {"reason", unfinished(all)},
      {"plans", Json::array()}};
  return json_text(json);
}

std::string rows_json(const Table& table) {
  Json rows = Json::array();
  for (const auto& row : table.rows) {
    Json object = Json::object();
    for (std::size_t c = 0; c < row.size(); ++c) {
      double number = 0;
      std::int64_t whole = 0;
      const char* end = row[c].data() + row[c].size();
      const auto [stop, status] = std::from_chars(row[c].data(), end, number);
      const auto [whole_stop, whole_status] = std::from_chars(row[c].data(), end, whole);
      if (row[c].empty()) {
        object[table.columns[c].title] = nullptr;
      } else if (row[c] == "true" || row[c] == "false") {
        object[table.columns[c].title] = row[c] == "true";
      } else if (whole_status == std::errc() && whole_stop == end) {
        object[table.columns[c].title] = whole;
      } else if (status == std::errc() && stop == end &&
                 std::isfinite(number)) {  // "nan" is a name
        object[table.columns[c].title] = number;
      } else {
        object[table.columns[c].title] = row[c];
      }
    }
    rows.push_back(object);
  }
  return json_text(rows);
}

}  // namespace planner
