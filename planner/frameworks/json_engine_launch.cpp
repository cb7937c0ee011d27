#include "planner/frameworks/json_engine_launch.hpp"

#include <nlohmann/json.hpp>

#include "costmodel/base/json_text.hpp"

namespace planner {

using Json = nlohmann::ordered_json;

std::string to_json(const EngineLaunch& launch) {
  Json map = Json::object();
  for (const auto& [name, value] : launch.arguments)
    map[name] = value.empty() ? Json(true) : Json(value);
  return costmodel::json_text(Json{{"arguments", map}, {"notes", launch.notes}});
}

}  // namespace planner
