#include "costmodel/base/unit_text.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "costmodel/base/escape.hpp"

namespace costmodel {

namespace {

struct Unit {
  std::string_view name;
  Dimension dimension;
  double factor;
};

constexpr double ki = 1024.0;
constexpr std::array units{
    Unit{"s", Dimension::time, 1},
    Unit{"ms", Dimension::time, 1e-3},
    Unit{"us", Dimension::time, 1e-6},
    Unit{"\u00b5s", Dimension::time, 1e-6},  // the micro sign, and the letter mu
    Unit{"\u03bcs", Dimension::time, 1e-6},
    Unit{"ns", Dimension::time, 1e-9},
    Unit{"min", Dimension::time, 60},
    Unit{"h", Dimension::time, 3600},
    Unit{"d", Dimension::time, 86400},
    Unit{"B", Dimension::size, 1},
    Unit{"kB", Dimension::size, 1e3},
    Unit{"MB", Dimension::size, 1e6},
    Unit{"GB", Dimension::size, 1e9},
    Unit{"TB", Dimension::size, 1e12},
    Unit{"KiB", Dimension::size, ki},
    Unit{"MiB", Dimension::size, ki* ki},
    Unit{"GiB", Dimension::size, ki* ki* ki},
    Unit{"TiB", Dimension::size, ki* ki* ki* ki},
    Unit{"B/s", Dimension::bandwidth, 1},
    Unit{"kB/s", Dimension::bandwidth, 1e3},
    Unit{"MB/s", Dimension::bandwidth, 1e6},
    Unit{"GB/s", Dimension::bandwidth, 1e9},
    Unit{"TB/s", Dimension::bandwidth, 1e12},
    Unit{"GiB/s", Dimension::bandwidth, ki* ki* ki},
    Unit{"Mb/s", Dimension::bandwidth, 1e6 / 8},
    Unit{"Gb/s", Dimension::bandwidth, 1e9 / 8},
    Unit{"Tb/s", Dimension::bandwidth, 1e12 / 8},
    Unit{"Mbit/s", Dimension::bandwidth, 1e6 / 8},
    Unit{"Gbit/s", Dimension::bandwidth, 1e9 / 8},
    Unit{"Gbps", Dimension::bandwidth, 1e9 / 8},
    Unit{"FLOP/s", Dimension::rate, 1},
    Unit{"MFLOP/s", Dimension::rate, 1e6},
    Unit{"GFLOP/s", Dimension::rate, 1e9},
    Unit{"TFLOP/s", Dimension::rate, 1e12},
    Unit{"PFLOP/s", Dimension::rate, 1e15},
};

std::string_view noun(Dimension dimension) {
  switch (dimension) {
    case Dimension::count: return "a plain number";
    case Dimension::time: return "a time";
    case Dimension::size: return "a size";
    case Dimension::bandwidth: return "a bandwidth";
    case Dimension::rate: return "an arithmetic rate";
  }
  return "";
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::string scaled(double value, double base, const std::array<const char*, 6>& names) {
  std::size_t i = 0;
  while (std::abs(value) >= base * 0.99995 && i + 1 < names.size()) {
    value /= base;
    ++i;
  }
  return fmt::format("{:.4g}{}", value, names[i]);
}

}  // namespace

std::string_view base_unit(Dimension dimension) {
  switch (dimension) {
    case Dimension::count: return "";
    case Dimension::time: return "s";
    case Dimension::size: return "B";
    case Dimension::bandwidth: return "B/s";
    case Dimension::rate: return "FLOP/s";
  }
  return "";
}

std::string_view usual_unit(Dimension dimension) {
  switch (dimension) {
    case Dimension::count: return "";
    case Dimension::time: return "us";
    case Dimension::size: return "GiB";
    case Dimension::bandwidth: return "GB/s";
    case Dimension::rate: return "TFLOP/s";
  }
  return "";
}

std::string_view example_of(Dimension dimension) {
  switch (dimension) {
    case Dimension::count: return "12";
    case Dimension::time: return "2.5 us";
    case Dimension::size: return "80 GiB";
    case Dimension::bandwidth: return "25 GB/s";
    case Dimension::rate: return "312 TFLOP/s";
  }
  return "";
}

ParsedQuantity parse_quantity(std::string_view raw, Dimension dimension) {
  std::string_view text = trimmed(raw);
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  double number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc() || !std::isfinite(number))
    return {{}, fmt::format("{} is not a number", quote(raw))};
  const std::string_view unit = trimmed(text.substr(static_cast<std::size_t>(end - text.data())));
  if (unit.empty()) return {number, ""};
  for (const auto& known : units) {
    if (known.name != unit) continue;
    if (known.dimension == dimension) return {number * known.factor, ""};
    return {{},
            fmt::format("{} is {}, not {}", quote(trimmed(raw)), noun(known.dimension),
                        noun(dimension))};
  }
  return {{}, fmt::format("{} has the unknown unit {}", quote(trimmed(raw)), quote(unit))};
}

std::optional<double> parse_count(std::string_view raw) {
  std::string text(trimmed(raw));
  std::erase(text, ',');
  constexpr std::string_view names = "kMBT";
  double factor = 1;
  if (const auto at = text.empty() ? names.npos : names.find(text.back()); at != names.npos) {
    factor = std::pow(1000.0, static_cast<double>(at + 1));
    text.pop_back();
  }
  const auto parsed = parse_quantity(text, Dimension::count);
  if (!parsed.value) return std::nullopt;
  return *parsed.value * factor;
}

std::string format_seconds(Seconds t) {
  const double s = std::abs(t.value);
  if (s == 0) return "0 s";
  if (s < 0.9995e-3) return fmt::format("{:.3g} us", t.value * 1e6);
  if (s < 1) return fmt::format("{:.4g} ms", t.value * 1e3);
  if (s < 9999.5) return fmt::format("{:.4g} s", t.value);
  if (s < 1e6) return fmt::format("{:.0f} s", t.value);
  return fmt::format("{:.4g} days", t.value / 86400);
}

std::string format_span(Seconds t) {
  constexpr double minute = 60, hour = 60 * minute, day = 24 * hour;
  if (t.value >= 2 * day) return fmt::format("{:.3g} days", t.value / day);
  if (t.value >= 2 * hour) return fmt::format("{:.3g} h", t.value / hour);
  if (t.value >= 2 * minute) return fmt::format("{:.3g} min", t.value / minute);
  return format_seconds(t);
}

std::string format_bytes(Bytes b) {
  return scaled(b.value, 1024, {" B", " KiB", " MiB", " GiB", " TiB", " PiB"});
}

std::string format_gib(Bytes b) { return fmt::format("{:.1f}", b.value / (ki * ki * ki)); }

std::string format_rate(FlopsPerSecond r) {
  return scaled(r.value, 1000,
                {" FLOP/s", " kFLOP/s", " MFLOP/s", " GFLOP/s", " TFLOP/s", " PFLOP/s"});
}

std::string format_flops(Flops f) {
  return scaled(f.value, 1000, {" FLOP", " kFLOP", " MFLOP", " GFLOP", " TFLOP", " PFLOP"});
}

std::string format_bandwidth(BytesPerSecond r) {
  return scaled(r.value, 1000, {" B/s", " kB/s", " MB/s", " GB/s", " TB/s", " PB/s"});
}

std::string format_count(double n) { return scaled(n, 1000, {"", " k", " M", " B", " T", " P"}); }

std::string format_integer(long long n) {
  std::string digits = fmt::format("{}", n < 0 ? -n : n);
  for (auto at = static_cast<long long>(digits.size()) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<std::size_t>(at), 1, ',');
  }
  return n < 0 ? "-" + digits : digits;
}

}  // namespace costmodel
