#include "planner/batch/json_journal.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <nlohmann/json.hpp>

#include "costmodel/base/error.hpp"
#include "costmodel/base/input_file.hpp"
#include "costmodel/base/json_text.hpp"
#include "costmodel/base/path.hpp"

namespace planner {

using Json = nlohmann::ordered_json;
using namespace costmodel;

namespace {

// A scenario, its model, cluster, device, stack and what they rest on.
constexpr std::size_t most_inputs = 1000;

JournalEntry entry_of(const Json& json) {
  return {.name = json.at("name"),
          .key = json.at("key"),
          .inputs = json.at("inputs"),
          .status = json.at("status"),
          .report = json.at("report"),
          .page = json.at("page")};
}

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::array<char, 32> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return {text.data(), size};
}

bool stands(const std::string& file, const std::string& print) {
  return !print.empty() && is_own_file(file) && file_fingerprint(file) == print;
}

}  // namespace

bool is_up_to_date(const JournalEntry& entry, const std::string& key, const JobFiles& files) {
  if (entry.key != key || !stands(files.report, entry.report) || !stands(files.page, entry.page) ||
      !entry.inputs.contains(files.scenario) || entry.inputs.size() > most_inputs)
    return false;
  for (const auto& [file, before] : entry.inputs) {
    if (before.empty() || file_fingerprint(file, measurement_limits.bytes) != before) return false;
  }
  return true;
}

Journal::Journal(const std::string& folder, const Shard& shard) {
  std::vector<std::string> names{journal_name(shard)};
  if (shard.is_all()) {
    for (const FolderEntry& entry : entries_of(folder))
      if (is_part_of_journal(entry.name)) names.push_back(entry.name);
  }
  for (const std::string& name : names) {
    files_.emplace_back(joined_path(folder, name));
    auto& entries = entries_.emplace_back();
    files_.back().read([&](const std::string& line) {
      try {
        JournalEntry entry = entry_of(parse_json(line, name));
        entries[entry.name] = entry;
      } catch (const ConfigError&) {      // the line that a kill cut short
      } catch (const Json::exception&) {  // another's
      }
    });
  }
}

bool Journal::knows(const std::string& name) const {
  return std::ranges::any_of(entries_, [&](const auto& one) { return one.contains(name); });
}

const JournalEntry* Journal::current(const std::string& name, const std::string& key,
                                     const JobFiles& files) const {
  for (const auto& one : entries_) {
    const auto found = one.find(name);
    if (found != one.end() && is_up_to_date(found->second, key, files)) return &found->second;
  }
  return nullptr;
}

void Journal::add(const JournalEntry& entry, double seconds) {
  files_.front().add(json_line({{"name", entry.name},
                                {"key", entry.key},
                                {"inputs", entry.inputs},
                                {"status", entry.status},
                                {"report", entry.report},
                                {"page", entry.page},
                                {"seconds", seconds},
                                {"finished", now_text()}}));
}

}  // namespace planner
