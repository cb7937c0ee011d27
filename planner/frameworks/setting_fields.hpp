// The settings of a framework's configuration, asked for by name with their defaults; what nobody
// asked for is listed.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <initializer_list>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/exchange/imported_job.hpp"
#include "planner/frameworks/overrides_text.hpp"

namespace planner {

class SettingFields {
 public:
  // `harmless`: what settings begin with that change neither time nor memory of an iteration.
  SettingFields(std::vector<SetField> fields, std::span<const std::string_view> harmless);

  bool has(std::string_view field) const;
  // The last setting of the name, which counts; null for none.
  const SetField* find(std::string_view field);
  // Throw costmodel::ConfigError at the place of a value that is not one. -1 stands where `least`
  // is -1.
  std::int64_t number(std::string_view field, std::int64_t otherwise, std::int64_t least = 1);
  bool flag(std::string_view field, bool otherwise);
  std::string word(std::string_view field, std::string_view otherwise);

  // Settings that were never asked for and change time or memory, as "NAME = VALUE".
  std::vector<std::string> rest() const;
  const std::set<std::string, std::less<>>& asked() const { return asked_; }
  // Of one that was asked for: "NAME = VALUE"; empty when it is not set.
  std::string written(std::string_view field) const;

 private:
  std::vector<SetField> fields_;
  std::span<const std::string_view> harmless_;
  std::set<std::string, std::less<>> asked_;
};

// Of sizes that a file has; at most 10^12, which is beyond any.
std::int64_t product(std::initializer_list<std::int64_t> factors);

// A job that is read from settings: what its importers share.
class SettingsImport {
 public:
  ImportedJob job;

 protected:
  SettingsImport(JobFormat format, SettingFields fields)
      : job(job_of(format)), fields_(std::move(fields)) {}

  // A word, a number, or a switch as true or false.
  template <class Of>
  void put(const char* part, const std::string& key, const Of& value) {
    put_key(job, part, key, fmt::format("{}", value));
  }
  // Names a setting, as written, that has no key; nothing for one that is not set.
  void leave_out(const std::string& written, std::string_view why);
  // Lists what was never asked for as left out, and keeps what was.
  void leave_out_rest();

  SettingFields fields_;
};

}  // namespace planner
