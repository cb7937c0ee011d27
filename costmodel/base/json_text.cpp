#include "costmodel/base/json_text.hpp"

#include <nlohmann/json.hpp>

#include "costmodel/base/escape.hpp"

namespace costmodel {

namespace {

std::string dumped(const nlohmann::ordered_json& json, int indent) {
  const auto replace = nlohmann::ordered_json::error_handler_t::replace;
  return without_hidden(json.dump(indent, ' ', false, replace));
}

}  // namespace

std::string json_text(const nlohmann::ordered_json& json) { return dumped(json, 2) + "\n"; }

std::string json_line(const nlohmann::ordered_json& json) { return dumped(json, -1); }

}  // namespace costmodel
