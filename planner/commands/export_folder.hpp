// `shardplan export --save-dir DIR`: an export as a folder that is handed on.
#pragma once

#include <string>

#include "costmodel/plan/parallel_plan.hpp"
#include "planner/commands/export_targets.hpp"
#include "planner/commands/session.hpp"

namespace planner {

struct FolderOfExport {
  const ExportTarget& target;
  Launcher launcher;
  Exported exported;  // as the launcher starts it, with all notes
};

// The script of ten iterations; empty where the target's program counts them by words of its own.
std::string smoke_test(const ExportTarget& target, const std::string& script);

// Writes launch.sh (job.yaml for Kubernetes), smoke_test, scenario.yaml with the plan,
// settings.json and README.md, and names them. Throws costmodel::ConfigError where one cannot be
// written.
std::string save_folder(const Session& session, const costmodel::Scenario& scenario,
                        const costmodel::ParallelPlan& plan, const FolderOfExport& folder);

}  // namespace planner
