#include "planner/batch/json_journal.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "costmodel/base/error.hpp"

namespace planner {

using Json = nlohmann::ordered_json;

namespace {

std::string contents(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

[[noreturn]] void cannot_write(const std::string& path, int fault) {
  throw costmodel::ConfigError({path, 0, 0},
                               std::string("cannot be written: ") + std::strerror(fault),
                               "free some space, or choose another --out");
}

JournalEntry entry_of(const Json& json) {
  return {.name = json.at("name"),
          .key = json.at("key"),
          .inputs = json.at("inputs"),
          .status = json.at("status"),
          .report = json.at("report"),
          .row = json.at("row").dump()};
}

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::array<char, 32> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return {text.data(), size};
}

}  // namespace

std::string fingerprint(std::string_view text) {
  std::uint64_t hash = 14695981039346656037U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return fmt::format("{:016x}", hash);
}

std::string file_fingerprint(const std::string& file) {
  if (access(file.c_str(), R_OK) != 0) return {};
  return fingerprint(contents(file));
}

bool is_up_to_date(const JournalEntry& entry, const std::string& key, const std::string& report) {
  if (entry.key != key || entry.report.empty() || entry.report != file_fingerprint(report))
    return false;
  for (const auto& [file, before] : entry.inputs)
    if (file_fingerprint(file) != before) return false;
  return !entry.inputs.empty();
}

Journal::Journal(const std::string& folder)
    : path_(folder + "/journal.jsonl"),
      file_(open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666)) {
  if (!file_) cannot_write(path_, errno);
  if (flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
    throw costmodel::ConfigError({path_, 0, 0}, "another batch is writing into this folder",
                                 "wait for its end, or choose another --out");
  }
  const std::string before = contents(path_);
  std::istringstream lines(before);
  for (std::string line; std::getline(lines, line);) {
    try {
      JournalEntry entry = entry_of(Json::parse(line));
      entries_[entry.name] = entry;
    } catch (const Json::exception&) {  // the line that a kill cut short
      continue;
    }
  }
  if (!before.empty() && before.back() != '\n' && write(file_.get(), "\n", 1) != 1)
    cannot_write(path_, errno);
}

void Journal::add(const JournalEntry& entry, double seconds) {
  const Json json{{"name", entry.name},     {"key", entry.key},
                  {"inputs", entry.inputs}, {"status", entry.status},
                  {"report", entry.report}, {"row", Json::parse(entry.row)},
                  {"seconds", seconds},     {"finished", now_text()}};
  const std::string line = json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  const std::scoped_lock lock(mutex_);
  const ssize_t count = write(file_.get(), line.data(), line.size());
  if (count != static_cast<ssize_t>(line.size())) cannot_write(path_, count < 0 ? errno : ENOSPC);
  if (fsync(file_.get()) != 0 && errno != EINVAL && errno != EROFS) cannot_write(path_, errno);
}

}  // namespace planner
