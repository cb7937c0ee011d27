#include "planner/report/json_mesh.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "costmodel/base/json_text.hpp"
#include "costmodel/plan/plan_text.hpp"
#include "planner/report/json_report.hpp"
#include "planner/report/strategy_text.hpp"

namespace planner {

using namespace costmodel;
using Json = nlohmann::ordered_json;

std::string mesh_json(const MeshSearch& found, const Scenario& s, std::optional<double> seconds) {
  Json json{{"scenario", s.name}, {"searched", mesh_counts_json(found)}, {"best", nullptr}};
  json["searched"]["seconds"] = seconds ? Json(*seconds) : Json();
  json["certificate"] = mesh_certificate_json(found);
  json["interrupted"] = !found.interrupted.empty();
  if (!found.interrupted.empty()) json["cause"] = interruption(found);
  if (found.plans.empty()) {
    json["reason"] = found.reason;
  } else {
    json["best"] = 0;
    if (found.fastest) json["fastest"] = fastest_json(found.plans.front(), found.fastest, s);
  }
  if (found.replicas && !found.replicas->shares.empty()) {
    const ReplicaSearch& r = *found.replicas;
    Json& told = json["replicas"] = {{"iteration_s", r.iteration.value},
                                     {"across_s", r.across.value},
                                     {"groups", Json::array()}};
    for (std::size_t g = 0; g < r.shares.size(); ++g) {
      const ParallelPlan& plan = r.shares[g].plan;
      told["groups"].push_back({{"group", s.cluster.groups[g].name},
                                {"tp", plan.tp},
                                {"pp", plan.pp},
                                {"dp", plan.dp},
                                {"micro_batch", plan.micro_batch},
                                {"micro_batches", r.shares[g].micro_batches},
                                {"sequences", r.shares[g].sequences()},
                                {"recompute", to_string(plan.recompute)},
                                {"zero", plan.zero},
                                {"reduced_s", r.ends[g].meeting.value},
                                {"memory_used", r.used[g]}});
    }
  }
  json["notes"] = mesh_sentences(found, s);
  json["plans"] = Json::array();
  for (const Estimate& e : found.plans) json["plans"].push_back(own_json(estimate_json(e, s)));
  return json_text(json);
}

std::string placement_text(const std::vector<PlacedRank>& ranks, const std::string& file) {
  const bool json = std::string_view(file).ends_with(".json");
  const bool experts =
      std::ranges::any_of(ranks, [](const PlacedRank& r) { return r.ep > 0 || r.etp > 0; });
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  std::string text;
  for (const PlacedRank& r : ranks) {
    nlohmann::ordered_json row{
        {"rank", r.rank}, {"stage", r.stage}, {"tp", r.tp}, {"cp", r.cp}, {"dp", r.dp}};
    if (experts) {
      row["ep"] = r.ep;
      row["etp"] = r.etp;
    }
    if (!r.group.empty()) row["group"] = r.group;
    row["node"] = r.node;
    row["device"] = r.device;
    if (json) {
      list.push_back(row);
    } else {
      text += "- " + json_line(row) + "\n";  // a JSON map is a YAML map
    }
  }
  return json ? json_text(list) : text;
}

}  // namespace planner
