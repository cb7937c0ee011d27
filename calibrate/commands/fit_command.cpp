#include "calibrate/commands/fit_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "calibrate/fit/fit_device.hpp"
#include "calibrate/fit/fit_network.hpp"
#include "calibrate/fit/fitted_profile.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/config/map_reader.hpp"
#include "costmodel/config/yaml.hpp"
#include "costmodel/machine/cluster_reader.hpp"
#include "costmodel/machine/device_reader.hpp"
#include "costmodel/plan/stack_reader.hpp"

namespace calibrate {

using namespace costmodel;

namespace {

Microbenchmarks load(const std::vector<std::string>& files) {
  Microbenchmarks all;
  for (const auto& file : files) all += read_microbenchmarks(load_yaml(file, measurement_limits));
  return all;
}

bool is_of(const Measurement& m, const std::vector<std::string>& sources) {
  return sources.empty() || std::ranges::any_of(sources, [&](const auto& words) {
           return m.title.find(words) != std::string::npos;
         });
}

Microbenchmarks of_sources(Microbenchmarks all, const std::vector<std::string>& sources) {
  std::set<std::string> titles;
  for (const auto& m : all.measurements) titles.insert(m.title);
  std::erase_if(all.measurements, [&](const Measurement& m) { return !is_of(m, sources); });
  if (all.measurements.empty() && !titles.empty()) {
    throw ConfigError({}, fmt::format("no source's title holds '{}'", fmt::join(sources, "' or '")),
                      fmt::format("the files' sources: {}", fmt::join(titles, "; ")));
  }
  return all;
}

bool is_one_of(const std::string& device, const std::vector<std::string>& names) {
  return std::ranges::find(names, device) != names.end();
}

// Those of the devices, which the sources call by these names.
Microbenchmarks of_devices(Microbenchmarks all, const std::vector<std::string>& names) {
  std::erase_if(all.measurements, [&](const auto& m) { return !is_one_of(m.device, names); });
  std::erase_if(all.unused, [&](const auto& u) { return !is_one_of(u.device, names); });
  return all;
}

// The devices that were asked for, else those that the base is measured as, else the only one.
Microbenchmarks chosen(const Microbenchmarks& all, const Request& request,
                       const std::vector<std::string>& base) {
  std::set<std::string> names;
  for (const auto& m : all.measurements) names.insert(m.device);
  const std::vector<std::string> known(names.begin(), names.end());
  for (const auto& device : request.devices) {
    if (names.count(device) == 0) {
      throw ConfigError({}, fmt::format("no measurement is of the device {}", quote(device)),
                        known_names(device, known, 64));
    }
  }
  if (!request.devices.empty()) return of_devices(all, request.devices);
  if (known.size() <= 1) return all;
  Microbenchmarks own = of_devices(all, base);
  if (!own.measurements.empty()) return own;
  throw ConfigError({}, fmt::format("the files measure {} devices", known.size()),
                    fmt::format("choose with --device: {}", fmt::join(known, ", ")));
}

struct Base {
  bool is_cluster;
  ResolvedConfig config;
};

// A name may be that of a cluster or a device; the keys of the file decide.
Base load_base(const Request& request) {
  const Mark mark{"--base", 0, 0};
  const auto clusters = config_names(request.path, "clusters");
  const bool named = std::ranges::find(clusters, request.base) != clusters.end();
  const std::string kind = named ? "clusters" : "devices";
  Base base{false, resolve_config(request.path, kind, scalar_value(request.base, mark))};
  base.is_cluster = base.config.value.find("tiers") != nullptr;
  return base;
}

// The names by which published sources call a device.
std::vector<std::string> names_of(const Value& device) {
  std::vector<std::string> names;
  const Value* list = device.find("measured_as");
  if (list == nullptr) return names;
  for (const Value& name : list->items) names.push_back(read_text(name, "measured_as"));
  return names;
}

std::vector<std::string> names_of(const Base& base, const ConfigPath& path) {
  if (!base.is_cluster) return names_of(base.config.value);
  const Value* device = base.config.value.find("device");
  if (device == nullptr) return {};
  return names_of(resolve_config(path, "devices", *device).value);
}

StackSpec stack_of(const Request& request) {
  if (request.stack.empty()) return {};
  const Mark mark{"--stack", 0, 0};
  const auto config = resolve_config(request.path, "stacks", scalar_value(request.stack, mark));
  return read_stack(config.value, config.name);
}

std::vector<FittedGroup> fit_base(const Base& base, const std::vector<Measurement>& measurements,
                                  const StackSpec& stack, std::vector<Unused>& unused) {
  const auto& [name, value] = base.config;
  if (base.is_cluster) {
    return fit_network(read_cluster(value, name, {}), measurements, unused,
                       stack.experts.exchange_efficiency);
  }
  const Value* attention = value.find("attention");
  const bool flash2 =
      attention != nullptr && attention->find("flash2_forward_efficiency") != nullptr;
  return fit_device(read_device(value, name), measurements, flash2, unused,
                    stack.experts.start_fused);
}

// Every shipped device against the measurements of it.
Answer compare_devices(const Microbenchmarks& all, const Request& request) {
  const auto stack = stack_of(request);
  Answer answer;
  for (const auto& name : config_names(request.path, "devices")) {
    const Base base{false, resolve_config(request.path, "devices", scalar_value(name, {}))};
    const auto own = of_devices(all, names_of(base.config.value));
    std::vector<Unused> unused;
    const auto groups = fit_base(base, own.measurements, stack, unused);
    if (groups.empty()) continue;
    answer.report += comparison(name, groups);
    answer.fitted = true;
  }
  if (answer.fitted) answer.report = comparison_head() + answer.report;
  return answer;
}

}  // namespace

Answer calibrate(const Request& request) {
  if (request.from.empty()) {
    throw ConfigError({}, "shardplan calibrate: no measurements are given",
                      "write --from FILE ...: files of microbenchmarks");
  }
  if (request.base.empty() && (request.writes || !request.devices.empty())) {
    throw ConfigError({}, "shardplan calibrate: no base is given",
                      "write --base NAME: the device or cluster that has all other constants");
  }
  const Microbenchmarks all = of_sources(load(request.from), request.sources);
  if (request.base.empty()) return compare_devices(all, request);
  const Base base = load_base(request);
  Microbenchmarks own = chosen(all, request, names_of(base, request.path));
  std::vector<Unused>& unused = own.unused;
  const auto groups = fit_base(base, own.measurements, stack_of(request), unused);
  Answer answer;
  answer.fitted = std::ranges::any_of(groups, [](const FittedGroup& g) { return g.any_fitted(); });
  answer.profile = to_yaml(fitted_profile(base.config.value, request.base, groups));
  answer.report =
      comparison_head() + comparison(base.config.name, groups) + "\n" + fit_report(groups, unused);
  return answer;
}

}  // namespace calibrate
