#include "planner/exchange/json_imported.hpp"

#include <nlohmann/json.hpp>

#include "costmodel/base/json_text.hpp"

namespace planner {

using namespace costmodel;
using Json = nlohmann::ordered_json;

namespace {

// A number or a Boolean of YAML is one of JSON; all else is text.
Json scalar_json(const Value& value) {
  return value.quoted ? Json(value.text) : json_scalar(value.text);
}

Json json_of(const Value& value) {
  switch (value.kind) {
    case Value::Kind::null: return nullptr;
    case Value::Kind::scalar: return scalar_json(value);
    case Value::Kind::sequence: {
      Json list = Json::array();
      for (const auto& item : value.items) list.push_back(json_of(item));
      return list;
    }
    case Value::Kind::map: break;
  }
  Json map = Json::object();
  for (const auto& entry : value.entries) map[entry.key] = json_of(entry.value);
  return map;
}

}  // namespace

std::string to_json(const ImportedJob& job) {
  Json json{{"format", job_format_names[static_cast<std::size_t>(job.format)]},
            {"scenario", json_of(job.scenario)},
            {"missing", Json::object()},
            {"left_out", job.left_out},
            {"notes", job.notes}};
  for (const auto& key : job.missing) json["missing"][key.key] = key.remedy;
  return json_text(json);
}

}  // namespace planner
