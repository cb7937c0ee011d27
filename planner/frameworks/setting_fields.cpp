#include "planner/frameworks/setting_fields.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"

namespace planner {

using namespace costmodel;

namespace {

constexpr std::int64_t most = 1'000'000'000'000;  // larger than any size

std::string value_of(const SetField& set) {
  const std::string known = fmt::format("{}", fmt::join(set.values, ", "));
  return known.empty() ? set.unknown : known;
}

std::string text_of(const SetField& set) {
  if (set.field == set.unknown) return shortened(set.unknown, 100);
  return shortened(fmt::format("{} = {}", set.name.empty() ? set.field : set.name, value_of(set)),
                   100);
}

}  // namespace

SettingFields::SettingFields(std::vector<SetField> fields,
                             std::span<const std::string_view> harmless)
    : fields_(std::move(fields)), harmless_(harmless) {}

bool SettingFields::has(std::string_view field) const {
  return std::ranges::any_of(fields_, [&](const SetField& set) { return set.field == field; });
}

const SetField* SettingFields::find(std::string_view field) {
  asked_.insert(std::string(field));
  const SetField* found = nullptr;
  for (const auto& set : fields_)
    if (set.field == field) found = &set;
  return found;
}

std::string SettingFields::word(std::string_view field, std::string_view otherwise) {
  const SetField* set = find(field);
  if (set == nullptr) return std::string(otherwise);
  if (!set->unknown.empty() || set->values.size() != 1) {
    throw ConfigError(set->mark,
                      fmt::format("{} is no value that is read here", quote(text_of(*set))),
                      "write the value itself, without a name or a call");
  }
  return set->values.front();
}

std::int64_t SettingFields::number(std::string_view field, std::int64_t otherwise,
                                   std::int64_t least) {
  const SetField* set = find(field);
  if (set == nullptr) return otherwise;
  const std::string text = word(field, "");
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || value < least || value > most || (least < 0 && value == 0)) {
    throw ConfigError(
        set->mark,
        fmt::format("{} is no whole number from {}", quote(text_of(*set)), least < 0 ? 1 : least),
        least < 0 ? "write 1 or more, or -1 for what is left"
                  : fmt::format("write {} or more, or leave it out", least));
  }
  return value;
}

bool SettingFields::flag(std::string_view field, bool otherwise) {
  const SetField* set = find(field);
  if (set == nullptr) return otherwise;
  const std::string text = word(field, "");
  if (text != "true" && text != "false") {
    throw ConfigError(set->mark, fmt::format("{} is neither true nor false", quote(text_of(*set))),
                      "write true or false");
  }
  return text == "true";
}

std::vector<std::string> SettingFields::rest() const {
  std::vector<std::string> list;
  for (const auto& set : fields_) {
    const std::string value = value_of(set);
    const bool harmless = std::ranges::any_of(
        harmless_, [&](std::string_view begin) { return set.field.starts_with(begin); });
    if (harmless || asked_.contains(set.field)) continue;
    if (value == "false" || value == "null" || value.empty()) continue;
    list.push_back(text_of(set));
  }
  return list;
}

std::string SettingFields::written(std::string_view field) const {
  std::string text;
  for (const auto& set : fields_)
    if (set.field == field) text = text_of(set);
  return text;
}

std::int64_t product(std::initializer_list<std::int64_t> factors) {
  std::int64_t product = 1;
  for (const std::int64_t factor : factors)
    if (__builtin_mul_overflow(product, factor, &product)) return most;
  return std::min(product, most);
}

void SettingsImport::leave_out(const std::string& written, std::string_view why) {
  if (!written.empty()) job.left_out.push_back(fmt::format("{}: {}", written, why));
}

void SettingsImport::leave_out_rest() {
  job.asked.assign(fields_.asked().begin(), fields_.asked().end());
  for (const auto& field : fields_.rest()) {
    const bool valued = field.find('=') != field.npos;
    leave_out(field, valued ? "no key says it" : "has no value in the script");
  }
}

}  // namespace planner
