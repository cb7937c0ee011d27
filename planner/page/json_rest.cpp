#include "planner/page/json_rest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/unit_text.hpp"
#include "planner/page/json_figure.hpp"
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

namespace {

std::string dollars_figure(const Json& number) {
  return figure(number, [](double usd) {
    constexpr double large = 1000;  // where cents do not matter
    return std::abs(usd) < large ? fmt::format("${:.4g}", usd)
                                 : "$" + costmodel::format_integer(std::llround(usd));
  });
}

std::string per_cent_figure(const Json& number) {
  return figure(number, [](double per_cent) { return fmt::format("{:.2f} %", per_cent); });
}

std::string flops_figure(const Json& number) {
  return figure(number, [](double flops) { return format_flops(costmodel::Flops(flops)); });
}

std::string in_days_figure(const Json& number) {
  return figure(number, [](double days) { return fmt::format("{:.4g} days", days); });
}

// A word of a key that is a unit, or a quantity that is always in one.
struct Unit {
  std::string_view word, name;
  std::string (*shown)(const Json&);
  bool in_title = true;
};
constexpr std::array units{Unit{"s", "seconds", &seconds_figure, false},
                           Unit{"seconds", "seconds", &seconds_figure},
                           Unit{"bytes", "bytes", &bytes_figure, false},
                           Unit{"flops", "floating-point operations", &flops_figure},
                           Unit{"pct", "per cent", &per_cent_figure, false},
                           Unit{"days", "days", &in_days_figure, false},
                           Unit{"usd", "dollars", &dollars_figure, false},
                           Unit{"fraction", "share", &share_figure},
                           Unit{"mfu", "share", &share_figure},
                           Unit{"hfu", "share", &share_figure},
                           Unit{"bubble", "share", &share_figure},
                           Unit{"efficiency", "share", &share_figure},
                           Unit{"probability", "share", &share_figure},
                           Unit{"spread", "share", &share_figure},
                           Unit{"effect", "share", &share_figure}};

// What a rate counts: "tokens" of tokens_per_s.
std::string_view counted_in(std::string_view key) { return key.substr(0, key.find("_per_")); }

// By the last word, else by the first: days_with_failures. Null for a plain number.
const Unit* unit_of(std::string_view key) {
  const std::string_view name = counted_in(key);
  for (const std::string_view word :
       {name.substr(name.rfind('_') + 1), name.substr(0, name.find('_'))}) {
    const auto found = std::ranges::find(units, word, &Unit::word);
    if (found == units.end() || (word == "s" && !name.ends_with("_s"))) continue;
    return &*found;
  }
  return nullptr;
}

}  // namespace

std::string title_of(std::string_view key) {
  for (const auto& [name, title] :
       {std::pair("mfu", "MFU"), std::pair("hfu", "HFU"), std::pair("usd", "dollars"),
        std::pair("peak_gib", "peak GiB"), std::pair("weights_gib", "weights GiB")})
    if (key == name) return title;
  const Unit* unit = unit_of(key);
  const bool redundant = unit != nullptr && !unit->in_title &&
                         key.ends_with("_" + std::string(unit->word)) && counted_in(key) == key;
  std::string title(redundant ? key.substr(0, key.rfind('_')) : key);
  std::ranges::replace(title, '_', ' ');
  return title;
}

std::string unit_name(std::string_view key) {
  const Unit* unit = unit_of(key);
  if (unit == nullptr) return "";
  const std::string rate = key.ends_with("_per_s") ? " a second" : "";
  return std::string(unit->name) + rate;
}

std::string keyed_figure(std::string_view key, const Json& number) {
  const Unit* unit = unit_of(key);
  return unit == nullptr ? count_figure(number) : unit->shown(number);
}

}  // namespace planner
