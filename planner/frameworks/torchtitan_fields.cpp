#include "planner/frameworks/torchtitan_fields.hpp"

#include <array>
#include <utility>

#include "planner/frameworks/framework_words.hpp"

namespace planner {

namespace {

// Sections of 2025, and what they became.
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> older_sections{
    {{"float8.", "quantize.linear.float8."},
     {"quantize.dense.", "quantize.linear."},
     {"quantize.moe.", "quantize.grouped_mm."}}};

std::vector<SetField> with_names_of_today(std::vector<SetField> fields) {
  for (auto& set : fields) {
    set.field = std::string(framework_words("torchtitan").read_as(set.field));
    for (const auto& [old, today] : older_sections)
      if (set.field.starts_with(old)) set.field.replace(0, old.size(), today);
  }
  return fields;
}

}  // namespace

TorchtitanFields::TorchtitanFields(std::vector<SetField> fields)
    : SettingFields(with_names_of_today(std::move(fields)),
                    framework_words("torchtitan").harmless) {}

}  // namespace planner
