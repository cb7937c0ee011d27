#include "planner/page/json_figure.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/json_text.hpp"
#include "costmodel/base/unit_text.hpp"
#include "planner/page/json_shown.hpp"

namespace planner {

using namespace costmodel;

std::string figure(const Json& number, const std::function<std::string(double)>& shown) {
  if (!number.is_number()) return number.is_null() ? "–" : html_text(words(number));
  note_shown(number);
  const std::string pointer = pointer_of(number);
  return fmt::format("<data value=\"{}\"{}>{}</data>", json_line(number),
                     pointer.empty() ? "" : " data-pointer=\"" + html_text(pointer) + "\"",
                     html_text(shown(number.get<double>())));
}

std::string seconds_figure(const Json& seconds) {
  return figure(seconds, [](double s) {
    constexpr double hour = 3600;
    return s < hour ? format_seconds(Seconds(s)) : format_span(Seconds(s));
  });
}

std::string bytes_figure(const Json& bytes) {
  return figure(bytes, [](double b) { return format_bytes(Bytes(b)); });
}

std::string gib_figure(const Json& bytes) {
  return figure(bytes, [](double b) { return format_gib(Bytes(b)); });
}

std::string share_figure(const Json& fraction) {
  return figure(fraction, [](double f) { return fmt::format("{:.1f} %", 100 * f); });
}

std::string count_figure(const Json& number) {
  return figure(number, [](double n) {
    if (std::abs(n) >= 1e9) return format_count(n);
    const bool whole = n == std::floor(n) || n >= 1000;
    return whole ? format_integer(std::llround(n)) : fmt::format("{:.4g}", n);
  });
}

const Json& at(const Json& json, std::initializer_list<const char*> keys) {
  static const Json none;
  const Json* value = &json;
  for (const char* key : keys) {
    if (!value->is_object()) return none;
    const auto found = value->find(key);
    if (found == value->end()) return none;
    value = &*found;
  }
  return *value;
}

double number_at(const Json& json, std::initializer_list<const char*> keys) {
  const Json& value = at(json, keys);
  return value.is_number() ? value.get<double>() : 0;
}

std::string words(const Json& value) {
  if (!value.is_structured() && !value.is_number()) note_shown(value);  // a number is a figure
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_structured()) return json_line(value);
  std::string text;
  for (const auto& [key, item] : value.items()) {
    text += text.empty() ? "" : ", ";
    if (value.is_object()) text += key + " ";
    text += words(item);
  }
  return text;
}

std::string sentences(const Json& list) {
  if (!list.is_array() || list.empty()) return "";
  std::string html = "<ul>\n";
  for (const Json& sentence : list) html += "<li>" + html_text(words(sentence)) + "</li>\n";
  return html + "</ul>\n";
}

std::string tile(const std::string& value, const std::string& name) {
  return fmt::format("<div class=\"tile\"><b>{}</b><span>{}</span></div>\n", value, name);
}

std::string text_tile(const std::string& value, const std::string& name) {
  return tile(html_text(value), html_text(name));
}

std::string section(const std::string& title, const std::string& body) {
  if (body.empty()) return "";
  return fmt::format("<section>\n<h2>{}</h2>\n{}</section>\n", html_text(title), body);
}

std::string folded(const std::string& title, const std::string& body) {
  return fmt::format("<details><summary>{}</summary>\n{}</details>\n", html_text(title), body);
}

}  // namespace planner
