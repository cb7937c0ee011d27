#include "calibrate/measure/records.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <sstream>
#include <utility>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/base/input_file.hpp"
#include "costmodel/base/output_file.hpp"
#include "costmodel/base/path.hpp"

namespace calibrate {

using namespace costmodel;

namespace {

constexpr std::size_t fields = 9;

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) parts.push_back(part);
  return parts;
}

double number(const std::string& text, const std::string& line) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw ConfigError(
        {}, fmt::format("{} is no number in the measurement {}", quote(text), quote(line)),
        "remove the .part file");
  }
  return value;
}

Pass pass_named(const std::string& name, const std::string& line) {
  const auto& names = pass_names;
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) {
    throw ConfigError({},
                      fmt::format("{} is no pass in the measurement {}", quote(name), quote(line)),
                      "remove the .part file");
  }
  return static_cast<Pass>(found - names.begin());
}

}  // namespace

std::string to_line(const Record& r) {
  return fmt::format("{}\t{}\t{}\t{}\t{:.17g}\t{:.9g}\t{:.9g}\t{}\t{:.4g}", r.task, r.op,
                     pass_names[static_cast<std::size_t>(r.pass)], fmt::join(r.point, ","),
                     r.amount, r.time.least.value, r.time.median.value, r.time.repeats,
                     r.time.relative_error);
}

Record read_line(const std::string& line) {
  const auto parts = split(line, '\t');
  if (parts.size() != fields) {
    throw ConfigError({}, fmt::format("{} is no measurement", quote(line)),
                      "remove the .part file");
  }
  Record r;
  r.task = parts[0];
  r.op = parts[1];
  r.pass = pass_named(parts[2], line);
  for (const auto& coordinate : split(parts[3], ',')) r.point.push_back(number(coordinate, line));
  r.amount = number(parts[4], line);
  r.time.least = Seconds(number(parts[5], line));
  r.time.median = Seconds(number(parts[6], line));
  r.time.repeats = static_cast<int>(number(parts[7], line));
  r.time.relative_error = number(parts[8], line);
  return r;
}

PartFile::PartFile(std::string path, std::string header)
    : path_(std::move(path)), header_(std::move(header)) {
  if (is_link(path_))
    throw ConfigError({path_, 0, 0}, "is a symbolic link", "remove it: measurements are kept here");
  if (!path_exists(path_)) return;
  std::istringstream file(read_file(path_, {.bytes = measurement_limits.bytes, .own = true}));
  std::string line;
  if (!std::getline(file, line) || line != header_) return;
  while (std::getline(file, line)) records_.push_back(read_line(line));
  taken_up_ = records_.size();
}

bool PartFile::has(const std::string& task) const {
  return std::ranges::any_of(records_, [&](const Record& r) { return r.task == task; });
}

void PartFile::add(const std::vector<Record>& records) {
  records_.insert(records_.end(), records.begin(), records.end());
  std::string text = header_ + "\n";
  for (const Record& r : records_) text += to_line(r) + "\n";
  write_file(path_, text, LinkedOutput::refused);
}

void PartFile::remove() { remove_file(path_); }

}  // namespace calibrate
