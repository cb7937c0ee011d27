#include "planner/report/json_sharding.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "planner/report/json_plan.hpp"
#include "planner/sharding/known_schemes.hpp"

namespace planner {

using Json = nlohmann::ordered_json;

namespace {

Json exchanges_json(const std::vector<Exchange>& exchanges) {
  Json list = Json::array();
  for (const Exchange& e : exchanges) {
    list.push_back({{"collective", costmodel::collective_names[static_cast<std::size_t>(e.kind)]},
                    {"axis", e.axis == 2 ? Json("both") : Json(e.axis)},
                    {"message_bytes", e.message.value}});
  }
  return list;
}

Json operator_json(const StageSharding& s, std::size_t node) {
  const OperatorStrategy& o = s.graph.strategy(node, s.found.choice);
  Json splits = Json::array();
  for (const Split split : o.split) splits.push_back(split_names[static_cast<std::size_t>(split)]);
  return {{"operator", s.graph.site(node).node.name()},
          {"strategy", to_string(o, s.graph.spec.mesh)},
          {"axes", splits},
          {"zero", o.zero},
          {"forward", exchanges_json(o.forward)},
          {"backward", exchanges_json(o.backward)},
          {"weights", exchanges_json(o.ending)},
          {"compute_s", (o.compute + o.optimizer).value},
          {"communication_s", o.communication.value},
          {"resharding_s", resharding_time(s.graph, node, s.found.choice).value},
          {"states_bytes", o.states.value},
          {"activations_bytes", o.activations.value}};
}

Json layers_json(const StageSharding& s) {
  Json groups = Json::array();
  for (const AlikeLayers& alike : alike_layers(s.graph, s.found.choice)) {
    Json operators = Json::array();
    for (const std::size_t node : alike.nodes) operators.push_back(operator_json(s, node));
    groups.push_back({{"layers", told(s.graph, alike)},
                      {"count", alike.layers.size()},
                      {"schemes", known_names(s.graph, alike, s.found.choice)},
                      {"operators", operators}});
  }
  return groups;
}

Json hand_json(const StageSharding& s) {
  if (s.hand.choice.empty()) return {{"time_s", nullptr}, {"reason", s.hand.reason}};
  return {{"time_s", s.hand.price.seconds},
          {"memory_bytes", s.hand.price.bytes},
          {"fits", s.hand.price.bytes <= s.graph.problem.memory_limit}};
}

// What the sharding amounts to; null where no plan that the scenario allows cuts the stage so.
Json as_plan_json(const ShardedStage& stage) {
  Json json = Json::object();
  if (stage.as_plan) {
    Json unlike = Json::array();
    for (const std::size_t node : stage.as_plan->unlike) {
      const Json name = stage.sharding.graph.site(node).node.name();
      if (std::find(unlike.begin(), unlike.end(), name) == unlike.end()) unlike.push_back(name);
    }
    json = {{"plan", printed_plan(*stage.estimate)},
            {"iteration_s", stage.estimate->iteration.value},
            {"peak_bytes", stage.estimate->peak.value},
            {"fits", stage.fits},
            {"leads_ranking", stage.better},
            {"cut_otherwise", unlike},
            {"cut_otherwise_gain_s", stage.as_plan->unlike_gain.value}};
  }
  if (stage.refused) json["refused"] = stage.reason;
  return json.empty() ? Json() : json;
}

}  // namespace

Json sharding_json(const ShardedStage& stage) {
  const StageSharding& s = stage.sharding;
  const DeviceMesh& mesh = s.graph.spec.mesh;
  const bool found = !s.found.choice.empty();
  Json json{{"mesh", {mesh.size(0), mesh.size(1)}},
            {"time_s", found ? Json(s.found.seconds) : Json()},
            {"lower_bound_s", found ? Json(s.found.lower_bound) : Json()},
            {"gap_pct", found ? Json(100 * (s.found.seconds / s.found.lower_bound - 1)) : Json()},
            {"memory_bytes", found ? Json(s.found.bytes) : Json()},
            {"memory_limit_bytes", s.graph.problem.memory_limit},
            {"plans_own", hand_json(s)}};
  if (!found) json["reason"] = s.found.reason;
  json["layers"] = found ? layers_json(s) : Json::array();
  json["as_plan"] = as_plan_json(stage);
  return json;
}

}  // namespace planner
