#include "planner/report/json_report.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "costmodel/base/json_text.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/estimate/json_estimate.hpp"
#include "costmodel/plan/plan_text.hpp"
#include "costmodel/scenario/residuals.hpp"
#include "planner/report/json_plan.hpp"
#include "planner/report/machines_report.hpp"
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

Json fastest_json(const Estimate& chosen, const std::optional<Estimate>& fastest,
                  const Scenario& s) {
  if (!fastest) return {};
  const Estimate& e = *fastest;
  return {{"iteration_s", e.iteration.value},
          {"faster_pct", 100 * (chosen.iteration / e.iteration - 1)},
          {"peak_bytes", e.peak.value},
          {"changes", plan_changes(chosen.plan, e.plan)},
          {"plan", printed_plan(e)},
          {"sentence", fastest_sentence(chosen, fastest, s)}};
}

namespace {

// Null where published runs have had all that the chosen plan has.
Json measured_json(const Strategies& all, const Scenario& s) {
  if (all.unmeasured == 0) return {};
  Json json{{"unmeasured", names_of(all.unmeasured)},
            {"sentence", measured_sentence(all, s)},
            {"plan", nullptr}};
  if (!all.measured) return json;
  const Estimate& e = *all.measured;
  json.update({{"iteration_s", e.iteration.value},
               {"slower_pct", 100 * (e.iteration / all.found.plans.front().iteration - 1)},
               {"peak_bytes", e.peak.value},
               {"plan_text", to_string(e.plan)},
               {"plan", printed_plan(e)}});
  return json;
}

// Of each key that is searched only with `auto` and was looked at: a faster plan with it, or null.
Json unasked_json(const Strategies& all, const Scenario& s) {
  Json rows = Json::array();
  for (const UnaskedKey& unasked : all.unasked) {
    Json row{{"key", "plan." + unasked.key}, {"plan", nullptr}};
    if (unasked.plan) {
      const Estimate& e = *unasked.plan;
      row.update({{"sentence", unasked_gain(unasked, all, s)},
                  {"iteration_s", e.iteration.value},
                  {"faster_pct", 100 * (1 - e.iteration / all.found.plans.front().iteration)},
                  {"peak_bytes", e.peak.value},
                  {"host_bytes", e.host.value},
                  {"plan_text", to_string(e.plan)},
                  {"plan", printed_plan(e)}});
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

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
  const auto busiest = busiest_rank(best, evaluator);
  json["reasons"] = reasons(best, busiest, host_waits(best, busiest, evaluator));
  json["fastest"] = fastest_json(all.found.plans.front(), all.fastest, s);
  json["measured"] = measured_json(all, s);
  json["unasked"] = unasked_json(all, s);
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

std::string failure_json(const SearchResult& r, const Diagnosis& d, const Scenario& s,
                         std::optional<double> seconds) {
  const Json json{{"scenario", s.name},
                  {"searched", searched_json(r, seconds)},
                  {"best", nullptr},
                  {"certificate", nullptr},
                  {"obstacles", d.obstacles},
                  {"remedies", sentences_of(d.remedies)},
                  {"fitting_changes", fitting_changes_json(d.remedies)},
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

std::string groups_json(const GroupsOf& of) {
  using nlohmann::ordered_json;
  const ParallelPlan& p = of.plan;
  const bool megatron = of.layout == RankLayout::megatron;
  ordered_json all{{"layout", rank_layout_names[static_cast<std::size_t>(of.layout)]}};
  all["order"] = megatron ? p.rank_order : "tp-cp-pp-dp";
  all["ranks"] = p.devices();
  all["sizes"] = {{"tp", p.tp}, {"pp", p.pp}, {"dp", p.dp}, {"cp", p.cp}, {"ep", p.ep}};
  if (megatron) all["sizes"]["etp"] = p.etp;
  // A line a kind: an array of arrays is read whole, and would take a line a rank.
  std::string text = json_text(all);
  text.erase(text.size() - 3);  // the end of the object
  text += ",\n  \"groups\": [";
  const char* between = "\n    ";
  for (const ProcessGroups& groups : process_groups(p, of.layout)) {
    const std::string network = network_of(groups, of);
    const ordered_json row{{"kind", groups.kind},
                           {"use", groups.use},
                           {"network", network.empty() ? ordered_json() : ordered_json(network)},
                           {"ranks", groups.groups}};
    text += between + json_line(row);
    between = ",\n    ";
  }
  return text + "\n  ]\n}\n";
}

namespace {

Json row_of_schedule(const ComparedSchedule& one) {
  if (!one.refused.empty()) return {{"schedule", one.name}, {"refused", one.refused}};
  const costmodel::Estimate& e = one.estimate;
  return {{"schedule", one.name},
          {"vpp", one.plan.vpp},
          {"offered", one.offered},
          {"iteration_s", e.iteration.value},
          {"pipeline_s", e.pipeline.value},
          {"bubble_fraction", e.bubble_fraction},
          {"peak_bytes", e.peak.value},
          {"in_flight_micro_batches", in_flight(e)},
          {"fits", e.fits()}};
}

}  // namespace

std::string schedules_json(const std::vector<ComparedSchedule>& schedules) {
  Json rows = Json::array();
  for (const ComparedSchedule& one : schedules) rows.push_back(row_of_schedule(one));
  return costmodel::json_text(Json{{"schedules", rows}});
}

namespace {

Json limit(double value) { return value > 0 ? Json(value) : Json(); }

Json devices_json(const DeviceLadder& ladder, const RunLimits& limits, const Scenario& s) {
  Json tried = Json::array();
  for (const Rung& rung : ladder.rungs) {
    Json row{{"devices", rung.devices}, {"keeps_limits", rung.keeps}, {"iteration_s", nullptr}};
    if (rung.best) {
      row["iteration_s"] = rung.best->iteration.value;
      row["training_run"] = training_run_json(rung.run, s.training.run_tokens);
      row["plan"] = printed_plan(*rung.best);
    }
    tried.push_back(std::move(row));
  }
  return {{"deadline_days", limit(limits.days)},
          {"budget_usd", limit(limits.usd)},
          {"interrupted", ladder.interrupted},
          {"chosen", ladder.chosen ? Json(ladder.rungs[*ladder.chosen].devices) : Json()},
          {"verdict", ladder_verdict(ladder, limits, s)},
          {"tried", tried}};
}

}  // namespace

std::string with_ladder(const std::string& plan_json, const DeviceLadder& ladder,
                        const RunLimits& limits, const Scenario& s) {
  Json json = own_json(plan_json);
  json["devices"] = devices_json(ladder, limits, s);
  return json_text(json);
}

std::string ladder_json(const DeviceLadder& ladder, const RunLimits& limits, const Scenario& s) {
  return json_text(Json{{"scenario", s.name},
                        {"plans", Json::array()},
                        {"devices", devices_json(ladder, limits, s)}});
}

std::string comparison_json(const std::vector<Compared>& columns) {
  const auto differing = differences(columns);
  Json json{
      {"scenarios", Json::array()}, {"differs", Json::array()}, {"against_first", Json::array()}};
  for (const Compared& column : columns) {
    Json entry{{"name", column.name}};
    entry.update(evaluation_json(column.estimate, column.scenario));
    json["scenarios"].push_back(std::move(entry));
  }
  for (const Difference& row : differing) {
    Json values = Json::array();
    for (const auto& value : row.values) values.push_back(value.empty() ? Json() : Json(value));
    json["differs"].push_back({{"key", row.key}, {"values", values}});
  }
  for (std::size_t i = 1; i < columns.size(); ++i) {
    const Against told = against(columns[0], columns[i], only_plans_differ(differing));
    Json chance;
    if (told.probability_faster >= 0) chance = told.probability_faster;
    json["against_first"].push_back({{"name", columns[i].name},
                                     {"seconds_for_same_tokens", told.same_tokens.value},
                                     {"speedup", told.speedup},
                                     {"probability_faster", chance},
                                     {"why", told.sentence}});
  }
  return costmodel::json_text(json);
}

using nlohmann::ordered_json;

namespace {

ordered_json row_json(const CollectivePrice& p, const CollectiveGroup& group) {
  ordered_json row{{"primitive", costmodel::collective_names[static_cast<std::size_t>(p.kind)]},
                   {"bytes", p.message.value},
                   {"time_s", p.time.value},
                   {"algbw_bytes_per_s", p.algorithm_bandwidth.value},
                   {"busbw_bytes_per_s", p.bus_bandwidth.value},
                   {"bus_factor", p.bus_factor},
                   {"sent_bytes", p.sent.value},
                   {"algorithm", p.algorithm},
                   {"measured", p.measured},
                   {"fixed_s", p.terms.fixed.value},
                   {"tiers", ordered_json::array()}};
  for (const costmodel::TierTerm& term : p.terms.tiers) {
    const auto& tier = group.cluster.tiers[term.tier];
    row["tiers"].push_back({{"tier", tier.name},
                            {"carried_bytes", term.carried.value},
                            {"rate_bytes_per_s", term.rate.value},
                            {"hops", term.hops},
                            {"latency_s", tier.latency.value}});
  }
  return row;
}

}  // namespace

std::string collective_json(const std::vector<CollectivePrice>& prices,
                            const CollectiveGroup& group) {
  ordered_json all{{"cluster", group.cluster.name},
                   {"ranks", group.layout.size},
                   {"stride", group.layout.stride},
                   {"rows", ordered_json::array()}};
  for (const CollectivePrice& price : prices) all["rows"].push_back(row_json(price, group));
  if (prices.size() == 1 && prices.front().kind == costmodel::CollectiveKind::all_reduce) {
    all["ways"] = ordered_json::array();
    for (const SumWay& way : ways_to_sum(prices.front().message, group))
      all["ways"].push_back({{"name", way.name}, {"time_s", way.time.value}});
  }
  return json_text(all);
}

}  // namespace planner
