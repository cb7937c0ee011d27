#include "planner/exchange/json_imported.hpp"

#include <charconv>
#include <cstdint>
#include <nlohmann/json.hpp>

namespace planner {

using namespace costmodel;
using Json = nlohmann::ordered_json;

namespace {

// A number or a Boolean of YAML is one of JSON; all else is text.
Json scalar_json(const Value& value) {
  const std::string& text = value.text;
  if (value.quoted) return text;
  if (text == "true" || text == "false") return text == "true";
  const char* const end = text.data() + text.size();
  std::int64_t whole = 0;
  if (const auto read = std::from_chars(text.data(), end, whole);
      read.ec == std::errc() && read.ptr == end)
    return whole;
  double number = 0;
  if (const auto read = std::from_chars(text.data(), end, number);
      read.ec == std::errc() && read.ptr == end)
    return number;
  return text;
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
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace planner
