#include "planner/page/json_rest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "costmodel/base/escape.hpp"
#include "planner/page/json_figure.hpp"
#include "planner/page/json_key.hpp"
#include "planner/page/json_shown.hpp"
#include "planner/report/html_table.hpp"

namespace planner {

namespace {

using namespace costmodel;

constexpr std::size_t most_rows = 500, most_columns = 40, longest_text = 2000, longest_name = 60,
                      most_members = 2;
constexpr int deepest = 8;

enum class Extent { all, rest };

bool is_wanted(const Json& value, Extent extent) {
  if (value.empty() || value == Json("")) return false;  // a null is empty too
  return extent == Extent::all || !is_shown(value);
}

// A number, a flag or a name: no sentence.
bool is_short(const Json& value) {
  if (value.is_string()) return value.get_ref<const std::string&>().size() <= longest_name;
  return !value.is_structured();
}

bool is_short_list(const Json& value) {
  return value.is_array() && std::ranges::all_of(value, &is_short);
}

bool has_one_line(const Json& value) {
  if (!value.is_object()) return !value.is_structured() || is_short_list(value);
  return value.size() <= most_members && std::ranges::all_of(value, [](const Json& item) {
           return is_short(item) || is_short_list(item);
         });
}

std::string cut_note(std::size_t all) {
  if (all <= most_rows) return "";
  return fmt::format("<p class=\"note\">The first {} of {}; the JSON has all.</p>\n", most_rows,
                     all);
}

std::string rows_table(const Json& array, Extent extent) {
  std::vector<const Json*> rows;
  for (const Json& row : array)
    if (is_wanted(row, extent)) rows.push_back(&row);
  const std::size_t all = rows.size();
  rows.resize(std::min(all, most_rows));
  std::vector<std::string> keys;
  std::set<std::string> seen;
  for (const Json* row : rows) {
    const bool named = row->front().is_string();
    for (const auto& [key, value] : row->items()) {
      if (!is_wanted(value, extent) && !(named && &value == &row->front())) continue;
      if (keys.size() < most_columns && seen.insert(key).second) keys.push_back(key);
    }
  }
  Table table;
  const bool numbered = std::ranges::none_of(rows, [](const Json* row) {
    return row->front().is_string();  // its name
  });
  if (numbered) table.columns.push_back({"#"});
  for (const std::string& key : keys) {
    table.columns.push_back({title_of(key), std::ranges::any_of(rows, [&](const Json* row) {
                               return at(*row, {key.c_str()}).is_number();
                             })});
  }
  for (const Json* row : rows) {
    auto& cells = table.rows.emplace_back();
    if (numbered) cells.push_back(fmt::format("{}", row - &array.front()));
    for (const std::string& key : keys) {
      const Json& value = at(*row, {key.c_str()});
      cells.push_back(value.is_null() ? "" : line_html(key, value));
    }
  }
  return table_of_html(table) + cut_note(all);
}

std::string value_html(const Json& value, Extent extent, int depth);

std::string object_html(const Json& object, Extent extent, int depth) {
  std::string facts, inner;
  std::size_t count = 0;
  for (const auto& [key, value] : object.items()) {
    if (!is_wanted(value, extent)) continue;
    if (++count > most_rows) break;
    if (has_one_line(value) || depth >= deepest) {
      facts +=
          fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", html_text(title_of(key)),
                      depth < deepest ? line_html(key, value) : html_text(shortened(words(value))));
    } else {
      inner += folded(title_of(key), value_html(value, extent, depth + 1));
    }
  }
  if (!facts.empty()) facts = "<dl class=\"facts\">\n" + facts + "</dl>\n";
  return facts + inner + (count > most_rows ? cut_note(object.size()) : "");
}

// "2 llama-3-8b": an object of a list by its place, and by its name where it begins with one.
std::string name_of(const Json& object, std::size_t index) {
  const std::string place = fmt::format("{}", index + 1);
  const bool named = !object.empty() && object.front().is_string();
  return named ? place + " " + words(object.front()) : place;
}

std::string array_html(const Json& array, Extent extent, int depth) {
  const auto is_row = [](const Json& item) {
    return item.is_object() && std::ranges::all_of(item, &has_one_line);
  };
  if (std::ranges::all_of(array, is_row)) return rows_table(array, extent);
  std::string html = "<ul>\n";
  for (std::size_t i = 0; i < std::min(array.size(), most_rows); ++i) {
    const Json& item = array[i];
    if (!is_wanted(item, extent)) continue;
    if (item.is_object() && depth < deepest) {
      const std::string name = name_of(item, i);  // first: the object need not repeat it
      html += "<li>" + folded(name, object_html(item, extent, depth + 1)) + "</li>\n";
    } else {
      html += "<li>" + line_html("", item) + "</li>\n";
    }
  }
  return html + "</ul>\n" + cut_note(array.size());
}

std::string value_html(const Json& value, Extent extent, int depth) {
  if (!is_wanted(value, extent)) return "";
  if (value.is_object()) return object_html(value, extent, depth);
  if (value.is_array()) return array_html(value, extent, depth);
  return "<p>" + line_html("", value) + "</p>\n";
}

}  // namespace

std::string values_html(const Json& value) { return value_html(value, Extent::all, 0); }
std::string rest_html(const Json& value) { return value_html(value, Extent::rest, 0); }

std::string line_html(std::string_view key, const Json& value) {
  if (value.is_number()) return keyed_figure(key, value);
  if (value.is_null()) return "–";
  if (value.is_boolean()) {
    note_shown(value);
    return value.get<bool>() ? "yes" : "no";
  }
  if (value.is_string()) return html_text(shortened(words(value), longest_text));
  std::string html;
  for (const auto& [name, item] : value.items()) {
    if (!html.empty()) html += ", ";
    html += value.is_object() ? html_text(title_of(name)) + " " + line_html(name, item)
                              : line_html(key, item);
  }
  return html;
}

}  // namespace planner
