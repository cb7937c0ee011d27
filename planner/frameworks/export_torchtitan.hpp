// Exports a plan to torchtitan: the settings of its configuration, and a script that writes it and
// launches. Keys as in torchtitan/config/job_config.py of 0.2.2, and torchtitan/config/training.py,
// parallelism.py and compile.py of late 2026 (tests/planner/support/torchtitan_keys.txt and
// torchtitan_python_keys.txt).
#pragma once

#include <string>
#include <vector>

#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/exchange/exported.hpp"
#include "planner/frameworks/torchtitan_rules.hpp"

namespace planner {

struct TorchtitanSetting {
  std::string section;  // "quantize.linear.float8"
  std::string key;
  std::string value;  // as TOML or Python writes it
};

struct TorchtitanExport {
  std::vector<TorchtitanSetting> settings;  // those of a section stand together
  std::string script;
  std::vector<std::string> notes;
};

// Throws costmodel::ConfigError when torchtitan cannot run the plan.
TorchtitanExport export_torchtitan(const costmodel::Scenario& scenario,
                                   const costmodel::ParallelPlan& plan, TorchtitanVersion version);

}  // namespace planner
