// `shardplan calibrate --for SCENARIO`: measures the operators of a scenario that a profile lacks,
// at their very shapes.
#pragma once

#include <string>
#include <vector>

#include "calibrate/commands/cpu_tasks.hpp"
#include "calibrate/measure/machine.hpp"
#include "calibrate/profile/measured_shapes.hpp"
#include "costmodel/config/search_path.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "runtime/run/backends.hpp"

namespace calibrate {

// The scenario, as `shardplan run` executes it.
struct Subject {
  std::string name;
  costmodel::Evaluator evaluator;  // in the precision that the backend computes in
  costmodel::ParallelPlan plan;
  costmodel::Precision precision() const { return evaluator.training().precision; }
};

// Throws ConfigError for what `shardplan run` refuses, such as a plan with keys that are `auto`,
// and for a scenario of serving.
Subject subject_of(const std::string& scenario, const costmodel::ConfigPath& path,
                   const runtime::Backend& backend);

// A device's file that --profile names.
struct Profile {
  std::string name;
  costmodel::Value value;
  costmodel::DeviceSpec device;
};

// Throws ConfigError when it cannot be read, or `shardplan calibrate` has not measured it.
Profile profile_named(const std::string& name, const costmodel::ConfigPath& path);

// Throws ConfigError where the profile is of another processor or GPU than this one.
void require_measured_on(const Profile& profile, const std::string& processor);

// In the order of the model's layers.
std::vector<LackingShape> lacking_shapes(const Subject& subject,
                                         const costmodel::DeviceSpec& device);

// Throws ConfigError when this machine's memory does not hold what cpu_shape_tasks() run.
void require_memory(const Subject& subject);

// Runs layers of the scenario on one core, as the first of its tensor ranks, in rounds, each
// operator timed in its place; no task where `device` lacks nothing.
std::vector<Task> cpu_shape_tasks(const Subject& subject, const costmodel::DeviceSpec& device,
                                  bool quick);

// Adds the records of shapes to a profile, and to its notes on the machine the date and command.
void note_shapes(costmodel::Value& profile, const std::vector<Record>& records,
                 const std::string& date, const std::string& command);

}  // namespace calibrate
