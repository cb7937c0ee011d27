// What plan and evaluate add to their report where a flag asks for it, --all, --front,
// --sensitivity, --upgrades, and where no even plan is possible: the sizes that would help.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "planner/commands/session.hpp"
#include "planner/diagnosis/remedies.hpp"
#include "planner/diagnosis/sensitivity.hpp"
#include "planner/diagnosis/upgrades.hpp"
#include "planner/search/device_front.hpp"
#include "planner/search/strategy.hpp"

namespace planner {

struct PlanExtras {
  FamilyMembers members;                   // --all: of each row of the ranking
  std::vector<costmodel::Estimate> front;  // --front: by memory
  std::optional<DeviceFront> devices;      // --front: by devices and cost
  std::optional<Sensitivity> sensitivity;
  std::optional<UpgradeGains> upgrades;
  std::vector<Remedy> fitting;        // of one plan that does not fit
  std::vector<std::string> remedies;  // where no plan of even stages obeys the rules
};

// Spreads of the numbers in configurations that a fit.yaml on the path states; none without one.
// Throws ConfigError for a faulty one.
std::vector<StatedSpread> stated_spreads(const costmodel::ConfigPath& path);

// How far the searches go that --deadline, --budget, --front and --upgrades need besides the one of
// `plan`: as far as that, but for shardings inside a stage.
SearchMethod method_of(const Options& options);

// What the flags ask for, of a search's result. Nothing without a plan.
PlanExtras extras_of(const Session& session, const costmodel::Scenario& scenario,
                     const Strategies& all, const std::function<bool()>& stopped);
// The same of one plan.
PlanExtras extras_of(const Session& session, const costmodel::Scenario& scenario,
                     const costmodel::Estimate& plan);

// The report's JSON with them, under the keys "device_front", "sensitivity", "upgrades"; and what
// follows it in text. The front by memory is in the report already.
std::string with_extras(const std::string& report_json, const PlanExtras& extras,
                        const costmodel::Scenario& scenario);
std::string extras_report(const PlanExtras& extras, const costmodel::Scenario& scenario,
                          const ReportStyle& style);

}  // namespace planner
