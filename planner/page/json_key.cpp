#include "planner/page/json_key.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "costmodel/base/unit_text.hpp"
#include "planner/page/json_figure.hpp"

namespace planner {

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
  std::string_view word;
  std::string (*shown)(const Json&);
  bool in_title = true;
};
constexpr std::array units{
    Unit{"s", &seconds_figure, false},    Unit{"seconds", &seconds_figure},
    Unit{"bytes", &bytes_figure, false},  Unit{"flops", &flops_figure},
    Unit{"pct", &per_cent_figure, false}, Unit{"days", &in_days_figure, false},
    Unit{"usd", &dollars_figure, false},  Unit{"fraction", &share_figure},
    Unit{"mfu", &share_figure},           Unit{"hfu", &share_figure},
    Unit{"bubble", &share_figure},        Unit{"efficiency", &share_figure},
    Unit{"probability", &share_figure},   Unit{"spread", &share_figure},
    Unit{"effect", &share_figure}};

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

std::string keyed_figure(std::string_view key, const Json& number) {
  const Unit* unit = unit_of(key);
  return unit == nullptr ? count_figure(number) : unit->shown(number);
}

}  // namespace planner
