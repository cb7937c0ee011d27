#include "planner/frameworks/override_words.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "costmodel/base/error.hpp"
#include "planner/frameworks/framework_words.hpp"

namespace planner {

namespace {

const FrameworkWords& override_data() { return framework_words("bridge"); }

OverrideForm override_form(std::string_view name) {
  constexpr std::array<std::string_view, 8> names{"value", "on",        "off",          "torch",
                                                  "list",  "import_on", "import_value", "together"};
  const auto* const at = std::ranges::find(names, name);
  SHARDPLAN_CHECK(at != names.end());
  return static_cast<OverrideForm>(at - names.begin());
}

std::vector<OverrideWord> read_override_rows() {
  static std::vector<std::string> flags;  // with their dashes
  flags.reserve(override_data().rows.size());
  std::vector<OverrideWord> table;
  for (const auto& row : override_data().rows) {
    SHARDPLAN_CHECK(row.size() >= 3);
    flags.push_back("--" + std::string(row[0]));
    OverrideWord word{flags.back(), row[1] == "-" ? "" : row[1], row[2] == "-" ? "" : row[2]};
    word.always = row.back() == "always";
    const std::size_t plain = word.always ? 4 : 3;
    if (row.size() > plain) word.form = override_form(row[3]);
    table.push_back(word);
  }
  return table;
}

}  // namespace

std::span<const OverrideWord> override_words() {
  static const std::vector<OverrideWord> table = read_override_rows();
  return table;
}

bool is_harmless_override(std::string_view field) {
  return std::ranges::any_of(override_data().harmless,
                             [&](std::string_view begin) { return field.starts_with(begin); });
}

}  // namespace planner
