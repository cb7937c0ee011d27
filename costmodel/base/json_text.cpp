#include "costmodel/base/json_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"

namespace costmodel {

namespace {

using Json = nlohmann::ordered_json;

std::string dumped(const Json& json, int indent) {
  return without_hidden(json.dump(indent, ' ', false, Json::error_handler_t::replace));
}

Mark mark_at(const std::string& text, const std::string& file, std::size_t at) {
  const std::string_view before = std::string_view(text).substr(0, std::min(at, text.size()));
  const auto lines = std::ranges::count(before, '\n');
  return {file, static_cast<int>(lines) + 1, static_cast<int>(before.size() - before.rfind('\n'))};
}

// What the library would answer by an exception without a place, or take as much stack for as there
// are levels.
void limit(const std::string& text, const std::string& file) {
  constexpr std::size_t deepest = 64;
  constexpr std::string_view digits = "+-.0123456789eE";
  std::size_t depth = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') {
      while (++at < text.size() && text[at] != '"') at += text[at] == '\\' ? 1 : 0;
    } else if (c == '[' || c == '{') {
      if (++depth > deepest) {
        throw ConfigError(mark_at(text, file, at), "values nest deeper than 64 levels",
                          "flatten the file");
      }
    } else if (c == ']' || c == '}') {
      depth -= depth > 0 ? 1 : 0;
    } else if (c == '-' || (c >= '0' && c <= '9')) {
      const std::size_t end = std::min(text.find_first_not_of(digits, at), text.size());
      const std::string number = text.substr(at, end - at);
      if (std::isinf(std::strtod(number.c_str(), nullptr))) {
        throw ConfigError(mark_at(text, file, at), quote(number) + " is beyond any number",
                          "allowed: up to 1e308");
      }
      at = end - 1;
    }
  }
}

}  // namespace

std::string json_text(const Json& json) { return dumped(json, 2) + "\n"; }

std::string json_line(const Json& json) { return dumped(json, -1); }

std::string versioned_json(std::string_view json) {
  const std::size_t rows = json.starts_with('[') ? 1 : 0;  // how deep the objects are
  std::size_t depth = 0, taken = 0;
  std::string all;
  for (std::size_t at = 0; at < json.size(); ++at) {
    const char c = json[at];
    if (c == '"') {
      while (++at < json.size() && json[at] != '"') at += json[at] == '\\' ? 1 : 0;
    } else if (c == ']' || c == '}') {
      --depth;
    } else if ((c == '[' || c == '{') && depth++ == rows && c == '{') {
      const std::size_t key = std::min(json.find_first_not_of(" \n", at + 1), json.size());
      const auto line = json.substr(at + 1, key - at - 1);  // none in JSON on one line
      all += json.substr(taken, at + 1 - taken);
      all += fmt::format(
          "{0}\"format_version\": {1},{0}\"program\": {{\"name\": \"shardplan\", \"version\": "
          "\"{2}\"}}{3}",
          line, format_version, SHARDPLAN_VERSION, json.substr(key).starts_with('}') ? "" : ",");
      taken = at + 1;
      if (rows == 0) break;
    }
  }
  return all.append(json.substr(taken));
}

Json parse_json(const std::string& text, const std::string& file) {
  limit(text, file);
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& fault) {
    throw ConfigError(mark_at(text, file, fault.byte > 0 ? fault.byte - 1 : 0),
                      "is not JSON: it cannot be read from here on",
                      "check brackets, quotes and commas here");
  } catch (const Json::exception& fault) {
    throw ConfigError({file, 0, 0}, "is not JSON: " + message_text(fault.what()),
                      "check its numbers");
  }
}

Json json_scalar(const std::string& text) {
  if (text == "true" || text == "false") return text == "true";
  const char* const end = text.data() + text.size();
  std::int64_t whole = 0;
  if (const auto read = std::from_chars(text.data(), end, whole);
      read.ec == std::errc() && read.ptr == end)
    return whole;
  double number = 0;
  const auto read = std::from_chars(text.data(), end, number);
  if (read.ec == std::errc() && read.ptr == end && std::isfinite(number)) return number;
  return text;
}

Json own_json(const std::string& text) {
  Json json = Json::parse(text, nullptr, false);
  SHARDPLAN_CHECK(!json.is_discarded());
  return json;
}

}  // namespace costmodel
