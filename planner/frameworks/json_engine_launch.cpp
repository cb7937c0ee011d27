#include "planner/frameworks/json_engine_launch.hpp"

#include <nlohmann/json.hpp>

#include "costmodel/base/json_text.hpp"

namespace planner {

using Json = nlohmann::ordered_json;

namespace {

Json arguments_json(const EngineLaunch& launch) {
  Json map = Json::object();
  for (const auto& [name, value] : launch.arguments)
    map[name] = value.empty() ? Json(true) : Json(value);
  return map;
}

}  // namespace

std::string to_json(const EngineLaunch& launch) {
  if (launch.pools.size() < 2) {
    return costmodel::json_text(
        Json{{"arguments", arguments_json(launch)}, {"notes", launch.notes}});
  }
  return costmodel::json_text(Json{{"prefill", {{"arguments", arguments_json(launch.pools[0])}}},
                                   {"decode", {{"arguments", arguments_json(launch.pools[1])}}},
                                   {"notes", launch.notes}});
}

}  // namespace planner
