#include "costmodel/scenario/residuals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <numbers>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/config/map_reader.hpp"
#include "costmodel/config/search_path.hpp"
#include "costmodel/config/yaml.hpp"

namespace costmodel {

namespace {

// The weight of the prior (all kinds), in runs.
constexpr double prior_runs = 8;
constexpr double normal_95 = 1.645;  // the normal distribution's 95th percentile
// Factors on the between-source variance: the next run of a known kind may come from a new source;
// stack or device is new; both are new. Chosen together with prior_runs so that 90 % of the runs of
// a left-out source are inside (docs/accuracy.md).
constexpr double share_known = 0.5;
constexpr double share_half_known = 1;
constexpr double share_unknown = 2;

struct Normal {
  double mean = 0, variance = 0;
};

// A mean far from the prior mean widens the interval: one of the two is wrong.
Normal shrunk(const Residuals& own, const Normal& towards) {
  const double n = own.runs;
  const double whole = n + prior_runs;
  const double surprise = own.mean - towards.mean;
  return {(n * own.mean + prior_runs * towards.mean) / whole,
          (n * own.spread * own.spread + prior_runs * towards.variance +
           n * prior_runs / whole * surprise * surprise) /
              whole};
}

// The interval always contains 1, the prediction itself.
ErrorBand band(double low, double high, const ResidualTable& table, std::string basis) {
  return {std::exp(std::min(low, 0.0)), std::exp(std::max(high, 0.0)), table.pair_spread,
          std::move(basis)};
}

ErrorBand band(const Normal& n, double added, const ResidualTable& table, std::string basis) {
  const double reach = normal_95 * std::sqrt(n.variance + added);
  return band(n.mean - reach, n.mean + reach, table, std::move(basis));
}

template <class Map, class Key>
const Residuals* find(const Map& map, const Key& key) {
  const auto at = map.find(key);
  return at == map.end() ? nullptr : &at->second;
}

std::string runs_text(int runs) {
  return fmt::format("{} published run{}", format_integer(runs), runs == 1 ? "" : "s");
}

}  // namespace

ErrorBand band_of(const ResidualTable& table, const std::string& stack, const std::string& device) {
  const double between = table.between * table.between;
  const Normal all{table.all.mean, table.all.spread * table.all.spread};
  const Residuals* of_stack = find(table.stacks, stack);
  const Residuals* of_device = find(table.devices, device);
  const Normal stack_known = of_stack != nullptr ? shrunk(*of_stack, all) : all;
  if (const Residuals* kind = find(table.kinds, std::pair(stack, device))) {
    const std::string basis =
        fmt::format("interval: {} of {} on {}", runs_text(kind->runs), stack, device);
    if (kind->range) return band(kind->range->first, kind->range->second, table, basis);
    // Shrinks towards the stack's mean if the stack has runs on other devices too.
    const bool elsewhere = of_stack != nullptr && of_stack->runs > kind->runs;
    const Normal towards{elsewhere ? stack_known.mean : all.mean, all.variance};
    return band(shrunk(*kind, towards), share_known * between / std::max(1, kind->sources), table,
                basis + (kind->runs < prior_runs ? ", few: widened towards all stacks" : ""));
  }
  const std::string named = stack.empty() ? "this stack" : stack;
  if (of_stack != nullptr) {
    const Normal wide{stack_known.mean, std::max(stack_known.variance, all.variance)};
    return band(wide, share_half_known * between, table,
                fmt::format("interval: no published run of {} on {}, {} on other devices: wider",
                            named, device, runs_text(of_stack->runs)));
  }
  if (of_device != nullptr) {
    const Normal wide{shrunk(*of_device, all).mean, all.variance};
    return band(wide, share_half_known * between, table,
                fmt::format("interval: no published run of {}, {} of other stacks on {}: wider",
                            named, runs_text(of_device->runs), device));
  }
  return band(all, share_unknown * between, table,
              fmt::format("interval: no published run of {}, and none on {}: widest", named,
                          device.empty() ? "this device" : device));
}

namespace {

double figure(MapReader& reader, std::string_view key, double least) {
  reader.required(key);
  return *reader.number(key, Dimension::count, least, 10);
}

Residuals read_group(const Value& value, const std::string& what) {
  MapReader reader(value, what);
  Residuals r;
  reader.required("runs");
  r.runs = static_cast<int>(*reader.integer("runs", {1, 1'000'000}));
  reader.required("sources");
  r.sources = static_cast<int>(*reader.integer("sources", {1, 1'000'000}));
  r.mean = figure(reader, "mean", -10);
  r.spread = figure(reader, "spread", 0);
  if (reader.optional("p5") != nullptr)
    r.range = {figure(reader, "p5", -10), figure(reader, "p95", -10)};
  reader.finish();
  return r;
}

std::string group_yaml(const Residuals& r) {
  const std::string range =
      r.range ? fmt::format(", p5: {:.4f}, p95: {:.4f}", r.range->first, r.range->second) : "";
  return fmt::format("{{runs: {}, sources: {}, mean: {:.4f}, spread: {:.4f}{}}}\n", r.runs,
                     r.sources, r.mean, r.spread, range);
}

// Quotes a key so that YAML parses it back.
std::string key_yaml(const std::string& name) {
  const auto plain = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '.'; };
  if (!name.empty() && std::isalpha(static_cast<unsigned char>(name.front())) != 0 &&
      std::all_of(name.begin(), name.end(), plain))
    return name + ":";
  return json_string(name) + ":";
}

}  // namespace

ResidualTable read_residuals(const Value& root) {
  MapReader reader(root, "residuals");
  ResidualTable table;
  table.all = read_group(reader.required("all"), "all");
  table.between = figure(reader, "between", 0);
  table.pair_spread = figure(reader, "pair_spread", 1e-6);
  for (const auto& entry : reader.required("devices").entries)
    table.devices[entry.key] = read_group(entry.value, "device " + quote(entry.key));
  for (const auto& stack : reader.required("stacks").entries) {
    MapReader inner(stack.value, "stack " + quote(stack.key));
    table.stacks[stack.key] = read_group(inner.required("all"), "all");
    for (const auto& device : inner.required("devices").entries) {
      table.kinds[{stack.key, device.key}] =
          read_group(device.value, "device " + quote(device.key));
    }
    inner.finish();
  }
  reader.finish();
  return table;
}

std::string to_yaml(const ResidualTable& table) {
  std::string text =
      "# What published runs say about the errors of predicted iteration times. Written by\n"
      "# shardplan validate configs/evidence --write-residuals configs/residuals.yaml\n"
      "# Of log(measured / predicted): mean and robust standard deviation, of all runs, by "
      "device,\n"
      "# and by stack and device; between: of the means of sources; pair_spread: between plans of\n"
      "# one workload, scale of a Student t distribution of 3 degrees of freedom.\n";
  text += "all: " + group_yaml(table.all);
  text += fmt::format("between: {:.4f}\npair_spread: {:.4f}\n", table.between, table.pair_spread);
  text += "devices:\n";
  for (const auto& [name, own] : table.devices)
    text += "  " + key_yaml(name) + " " + group_yaml(own);
  text += "stacks:\n";
  for (const auto& [name, own] : table.stacks) {
    text += "  " + key_yaml(name) + "\n    all: " + group_yaml(own) + "    devices:\n";
    for (const auto& [kind, residuals] : table.kinds) {
      if (kind.first == name)
        text += "      " + key_yaml(kind.second) + " " + group_yaml(residuals);
    }
  }
  return text;
}

struct ResidualFiles {
  struct Loaded {
    std::optional<ResidualTable> table;
    std::string fault;
  };
  std::map<std::string, Loaded> loaded;
};

namespace {

// `validate` writes the table anew and has read it before.
constexpr ReadLimits own_table{.bytes = config_limits.bytes, .own = true};

ResidualFiles::Loaded load(const std::string& file) {
  try {
    return {read_residuals(load_yaml(file, own_table)), ""};
  } catch (const ConfigError& fault) {
    return {{}, fault.what()};
  }
}

}  // namespace

ErrorBand find_band(const ConfigPath& path, const std::string& stack, const std::string& device) {
  for (const auto& directory : path.directories) {
    const auto file = std::filesystem::path(directory) / "residuals.yaml";
    if (!path.residuals) path.residuals = std::make_shared<ResidualFiles>();
    auto& files = path.residuals->loaded;
    auto at = files.find(file.string());
    if (at == files.end()) {
      std::error_code status;
      if (!std::filesystem::exists(file, status)) continue;
      at = files.emplace(file.string(), load(file.string())).first;
    }
    if (at->second.table) return band_of(*at->second.table, stack, device);
    ErrorBand unknown;
    unknown.basis = "interval: the widest, the table of residuals is no use: " + at->second.fault;
    return unknown;
  }
  return {};
}

// Student's t distribution of 3 degrees of freedom: heavier tails than the normal, as the pairs of
// published runs have.
double probability_faster(double a, double b, double pair_spread) {
  const double t = std::log(b / a) / pair_spread;
  const double x = t / std::numbers::sqrt3;
  return 0.5 + (x / (1 + x * x) + std::atan(x)) / std::numbers::pi;
}

}  // namespace costmodel
