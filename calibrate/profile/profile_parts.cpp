#include "calibrate/profile/profile_parts.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace calibrate {

using namespace costmodel;

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

double best_rate(const std::vector<Record>& records, const std::string& op, Pass pass) {
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

void set_formulas(Value& map, const std::vector<Record>& records, double peak, double bytes_per_s,
                  const std::string& by) {
  const auto attention = [&](Pass pass) {
    return figure(share_of(best_rate(records, "flash attention", pass), peak));
  };
  map.set("gemm", group({{"efficiency", scalar_value("1")}, {"half_k", scalar_value("16")}},
                        "the peak is a product's rate; half_k assumed; `operators` comes first"));
  map.set("attention", group({{"forward_efficiency", attention(Pass::forward)},
                              {"backward_efficiency", attention(Pass::input_gradient)}},
                             by + ": the fastest attention; `operators` comes first"));
  map.set(
      "memory_efficiency",
      group(
          {{"large", scalar_value("1")}, {"half_bytes", figure(call_time(records) * bytes_per_s)}},
          "large: the bandwidth is the measured rate; half_bytes: what is moved during a call"));
}

}  // namespace calibrate
