#include "planner/report/json_comparison.hpp"

#include <nlohmann/json.hpp>

#include "costmodel/base/json_text.hpp"
#include "planner/report/json_plan.hpp"

namespace planner {

using Json = nlohmann::ordered_json;

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

}  // namespace planner
