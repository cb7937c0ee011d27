#include "calibrate/profile_parts.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace calibrate {

using costmodel::scalar_value;
using costmodel::Value;

Value quoted(const std::string& text) {
  Value value = scalar_value(text);
  value.quoted = true;
  return value;
}

Value figure(double value, const char* unit) {
  return scalar_value(fmt::format("{:.6g}{}", value, unit));
}

Value group(const Entries& entries, const std::string& source) {
  Value map;
  for (const auto& [key, value] : entries) map.set(key, value);
  map.set("source", quoted(source));
  return map;
}

double best_rate(const std::vector<Record>& records, const std::string& op, costmodel::Pass pass) {
  double best = 0;
  for (const Record& r : records)
    if (r.op == op && r.pass == pass) best = std::max(best, r.amount / r.time.median.value);
  return best;
}

double bandwidth(const std::vector<Record>& records) {
  double size = 0, rate = 0;
  for (const Record& r : records) {
    if (r.op != "copy" && r.op != "triad") continue;
    if (r.amount > size) rate = r.amount / r.time.median.value;
    size = std::max(size, r.amount);
  }
  return rate;
}

double call_time(const std::vector<Record>& records) {
  for (const Record& r : records)
    if (r.op == "call") return r.time.median.value;
  return 0;
}

double share_of(double rate, double peak) {
  return rate > 0 && peak > 0 ? std::clamp(rate / peak, 1e-3, 1.0) : 0.5;
}

}  // namespace calibrate
