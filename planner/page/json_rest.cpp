#include "planner/page/json_rest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "costmodel/base/escape.hpp"
#include "planner/page/json_figure.hpp"
#include "planner/report/html_table.hpp"

namespace planner {

namespace {

using costmodel::html_text;

constexpr std::size_t most_rows = 500, most_columns = 40, longest_cell = 400;
constexpr int deepest = 6;

std::string short_words(const Json& value) {
  return html_text(costmodel::shortened(words(value), longest_cell));
}

// Its number's own text, for a program; else text.
std::string cell(const Json& value) {
  if (value.is_number())
    return figure(value, [&](double) { return costmodel::shortened(words(value), 24); });
  return value.is_null() ? "" : short_words(value);
}

std::string cut_note(std::size_t all) {
  if (all <= most_rows) return "";
  return fmt::format("<p class=\"note\">The first {} of {}; the JSON has all.</p>\n", most_rows,
                     all);
}

std::string rows_table(const Json& rows) {
  Table table;
  std::vector<std::string> keys;
  std::set<std::string> seen;
  const std::size_t shown = std::min(rows.size(), most_rows);
  for (std::size_t i = 0; i < shown; ++i) {
    for (const auto& [key, value] : rows[i].items())
      if (keys.size() < most_columns && seen.insert(key).second) keys.push_back(key);
  }
  for (const auto& key : keys) {
    const bool numbers = std::any_of(rows.begin(), rows.end(), [&](const Json& row) {
      const auto found = row.find(key);
      return found != row.end() && found->is_number();
    });
    table.columns.push_back({key, numbers});
  }
  for (std::size_t i = 0; i < shown; ++i) {
    auto& row = table.rows.emplace_back();
    for (const auto& key : keys) row.push_back(rows[i].contains(key) ? cell(rows[i][key]) : "");
  }
  return table_of_html(table) + cut_note(rows.size());
}

std::string value_html(const Json& value, int depth);

std::string object_html(const Json& object, int depth) {
  std::string facts, inner;
  std::size_t told = 0;
  for (const auto& [key, value] : object.items()) {
    if (++told > most_rows) break;
    if (value.is_structured() && !value.empty() && depth < deepest) {
      inner += folded(key, value_html(value, depth + 1));
    } else {
      facts += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", html_text(key), cell(value));
    }
  }
  if (!facts.empty()) facts = "<dl class=\"facts\">\n" + facts + "</dl>\n";
  return facts + inner + cut_note(object.size());
}

std::string array_html(const Json& array) {
  const auto is_row = [](const Json& item) { return item.is_object(); };
  if (std::all_of(array.begin(), array.end(), is_row)) return rows_table(array);
  std::string html = "<ul>\n";
  for (std::size_t i = 0; i < std::min(array.size(), most_rows); ++i)
    html += "<li>" + short_words(array[i]) + "</li>\n";
  return html + "</ul>\n" + cut_note(array.size());
}

std::string value_html(const Json& value, int depth) {
  if (value.empty()) return "";
  if (value.is_object()) return object_html(value, depth);
  if (value.is_array()) return array_html(value);
  return "<p>" + cell(value) + "</p>\n";
}

}  // namespace

std::string rest_html(const Json& value) { return value_html(value, 0); }

}  // namespace planner
