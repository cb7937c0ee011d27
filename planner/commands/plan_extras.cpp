#include "planner/commands/plan_extras.hpp"

#include "costmodel/base/path.hpp"
#include "costmodel/machine/device_reader.hpp"
#include "planner/accuracy/fitted_constants.hpp"
#include "planner/diagnosis/better_sizes.hpp"
#include "planner/report/json_parts.hpp"
#include "planner/report/machines_report.hpp"
#include "planner/report/sensitivity_report.hpp"

namespace planner {

using namespace costmodel;

namespace {

// The devices that the configurations offer.
std::vector<DeviceSpec> known_devices(const ConfigPath& path) {
  std::vector<DeviceSpec> all;
  for (const std::string& name : config_names(path, "devices")) {
    const auto device = resolve_config(path, "devices", scalar_value(name));
    all.push_back(read_device(device.value, device.name));
  }
  return all;
}

}  // namespace

std::vector<StatedSpread> stated_spreads(const ConfigPath& path) {
  std::vector<StatedSpread> all;
  for (const auto& directory : path.directories) {
    const std::string file = joined_path(directory, "fit.yaml");
    if (!is_regular_file(file)) continue;
    for (const FittedConstant& c : read_constants(file, path))
      all.push_back({c.files, c.key, c.low, c.high, c.spread});
    break;
  }
  return all;
}

SearchMethod method_of(const Options& options) {
  SearchMethod method{.threads = threads_of(options)};
  if (options.strategy == "grid") method.reach = Reach::even;
  if (options.strategy == "layouts") method.reach = Reach::layouts;
  return method;
}

PlanExtras extras_of(const Session& session, const Scenario& s, const Strategies& all,
                     const std::function<bool()>& stopped) {
  PlanExtras extras;
  const Options& options = session.options;
  const std::vector<Estimate>& plans = all.found.plans;
  if (plans.empty()) return extras;
  const SearchMethod method = method_of(options);
  if (options.all) extras.members = family_members(s, plans, method, stopped);
  if (options.front) {
    extras.front = memory_front(s, plans.front(), method, stopped);
    extras.devices = device_front(s, extras.front, method, stopped);
  }
  if (options.sensitivity) {
    extras.sensitivity =
        sensitivity_of_search(s, plans, stated_spreads(session.path), method.threads, stopped);
  }
  if (all.layouts && all.found.statistics.configurations == 0 && all.interrupted.empty())
    extras.remedies = better_sizes(s, plans.front(), stopped);
  if (options.upgrades) {
    extras.upgrades = upgrade_gains(s, plans.front(), known_devices(session.path), method, stopped);
  }
  return extras;
}

PlanExtras extras_of(const Session& session, const Scenario& s, const Estimate& plan) {
  PlanExtras extras;
  extras.fitting = fitting_changes(plan, s, other_stacks(session));
  if (session.options.sensitivity)
    extras.sensitivity = sensitivity(s, plan, stated_spreads(session.path));
  return extras;
}

std::string with_extras(const std::string& report_json, const PlanExtras& extras,
                        const Scenario& s) {
  std::string json = report_json;
  if (!extras.members.empty()) json = with_members(json, extras.members);
  if (extras.devices) json = with_device_front(json, *extras.devices, s);
  if (extras.sensitivity) json = with_sensitivity(json, *extras.sensitivity);
  if (extras.upgrades) json = with_upgrades(json, *extras.upgrades, s);
  if (!extras.remedies.empty()) json = with_remedies(json, extras.remedies);
  if (!extras.fitting.empty()) json = with_fitting_changes(json, extras.fitting);
  return json;
}

std::string extras_report(const PlanExtras& extras, const Scenario& s, const ReportStyle& style) {
  std::string text;
  if (!extras.remedies.empty()) {
    text += section_title("What would help (no plan of even stages obeys the rules here)", style);
    for (const auto& remedy : extras.remedies) text += bullet(remedy, style);
  }
  text += fitting_report(extras.fitting, style);
  if (extras.devices) text += device_front_report(*extras.devices, s, style);
  if (extras.sensitivity) text += sensitivity_report(*extras.sensitivity, style);
  if (extras.upgrades) text += upgrade_report(*extras.upgrades, s, style);
  return text;
}

}  // namespace planner
