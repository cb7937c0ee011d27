// A scenario in words: a model's name or a framework's job where a scenario may stand, and --gpus,
// --cluster, --batch,
// --sequence, --precision and --framework, which set values as --set does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "costmodel/config/search_path.hpp"
#include "costmodel/config/value.hpp"
#include "planner/commands/options.hpp"
#include "planner/exchange/imported_job.hpp"
#include "planner/logs/training_log.hpp"

namespace planner {

struct Gpus {
  std::int64_t devices = 0;  // 0: not said
  std::string device;        // empty: not said
};

// "64xh100", "64 h100", "8x4090", "h100:64" and "64". Throws ConfigError for what is none of them.
Gpus read_gpus(const std::string& text);

// What the words set: assignments of a scenario, with what was chosen for it under `assumed`.
// Throws ConfigError for a device, cluster or stack of that name that is not known.
std::vector<std::string> word_assignments(const Options& options,
                                          const costmodel::ConfigPath& path);

// The scenario of a model (a name, or the file of one) with these assignments: a plan that is
// searched, and what costmodel::assume_training() adds. Throws ConfigError where no devices are
// given.
costmodel::Value scenario_of_model(const std::string& model,
                                   const std::vector<std::string>& assignments,
                                   const costmodel::ConfigPath& path);

// What the command line adds to an imported job: --cluster, --set, and, where neither the file nor
// these have a number of devices, the fewest full nodes of the cluster that its plan divides. What
// it does not state is taken from its log, if that does: `logged`.
void complete_job(const Options& options, const costmodel::ConfigPath& path, ImportedJob& job,
                  const std::vector<LoggedSetting>& logged = {});

// Throws ConfigError for the first key that a prediction needs and that is missing.
void require_complete(const ImportedJob& job, const std::string& file);

// What was assumed of a job and what was left out, a line each.
std::vector<std::string> notes_of(const ImportedJob& job);

// The file of a scenario that an operand names. Of a model, and of a job in a framework's own words
// (with complete_job()), the scenario is made, and is from then on what loaded() gives for the name
// returned.
std::string scenario_operand(const std::string& operand, const Options& options,
                             const costmodel::ConfigPath& path);

}  // namespace planner
