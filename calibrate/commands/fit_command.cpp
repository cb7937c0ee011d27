#include "calibrate/commands/fit_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "calibrate/fit/fit_device.hpp"
#include "calibrate/fit/fit_network.hpp"
#include "calibrate/fit/fitted_profile.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/config/yaml.hpp"
#include "costmodel/machine/cluster_reader.hpp"
#include "costmodel/machine/device_reader.hpp"

namespace calibrate {

using costmodel::ConfigError;
using costmodel::Value;

namespace {

Microbenchmarks load(const std::vector<std::string>& files) {
  Microbenchmarks all;
  for (const auto& file : files)
    all += read_microbenchmarks(costmodel::load_yaml(file, costmodel::measurement_limits));
  return all;
}

bool is_of(const Measurement& m, const std::vector<std::string>& sources) {
  return sources.empty() || std::any_of(sources.begin(), sources.end(), [&](const auto& words) {
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

std::vector<Measurement> of_devices(const Microbenchmarks& all, const Request& request) {
  std::set<std::string> names;
  for (const auto& m : all.measurements) names.insert(m.device);
  const std::vector<std::string> known(names.begin(), names.end());
  for (const auto& device : request.devices) {
    if (names.count(device) == 0) {
      throw ConfigError({},
                        fmt::format("no measurement is of the device {}", costmodel::quote(device)),
                        costmodel::known_names(device, known, 64));
    }
  }
  if (request.devices.empty() && known.size() > 1) {
    throw ConfigError({}, fmt::format("the files measure {} devices", known.size()),
                      fmt::format("choose with --device: {}", fmt::join(known, ", ")));
  }
  if (request.devices.empty()) return all.measurements;
  std::vector<Measurement> chosen;
  for (const auto& m : all.measurements) {
    if (std::find(request.devices.begin(), request.devices.end(), m.device) !=
        request.devices.end())
      chosen.push_back(m);
  }
  return chosen;
}

struct Base {
  bool is_cluster;
  costmodel::ResolvedConfig config;
};

// A name may be that of a cluster or a device; the keys of the file decide.
Base load_base(const Request& request) {
  const costmodel::Mark mark{"--base", 0, 0};
  const auto clusters = costmodel::config_names(request.path, "clusters");
  const bool named = std::find(clusters.begin(), clusters.end(), request.base) != clusters.end();
  const std::string kind = named ? "clusters" : "devices";
  Base base{false, costmodel::resolve_config(request.path, kind,
                                             costmodel::scalar_value(request.base, mark))};
  base.is_cluster = base.config.value.find("tiers") != nullptr;
  return base;
}

std::vector<FittedGroup> fit_base(const Base& base, const std::vector<Measurement>& measurements,
                                  std::vector<Unused>& unused) {
  const auto& [name, value] = base.config;
  if (base.is_cluster)
    return fit_network(costmodel::read_cluster(value, name, {}), measurements, unused);
  const Value* attention = value.find("attention");
  const bool flash2 =
      attention != nullptr && attention->find("flash2_forward_efficiency") != nullptr;
  return fit_device(costmodel::read_device(value, name), measurements, flash2, unused);
}

}  // namespace

Answer calibrate(const Request& request) {
  if (request.from.empty()) {
    throw ConfigError({}, "shardplan calibrate: no measurements are given",
                      "write --from FILE ...: files of microbenchmarks");
  }
  if (request.base.empty()) {
    throw ConfigError({}, "shardplan calibrate: no base is given",
                      "write --base NAME: the device or cluster that has all other constants");
  }
  const Microbenchmarks all = of_sources(load(request.from), request.sources);
  const auto measurements = of_devices(all, request);
  const Base base = load_base(request);
  std::vector<Unused> unused = all.unused;
  const auto groups = fit_base(base, measurements, unused);
  Answer answer;
  answer.fitted = std::any_of(groups.begin(), groups.end(),
                              [](const FittedGroup& g) { return g.any_fitted(); });
  answer.profile = to_yaml(fitted_profile(base.config.value, request.base, groups));
  answer.report = fit_report(groups, unused);
  return answer;
}

}  // namespace calibrate
