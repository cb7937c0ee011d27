// A job as it runs, or may run, and its settings by the keys of a scenario: what a log says of a
// job can so be held against what the scenario says, and be tried instead.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "costmodel/machine/cluster_spec.hpp"
#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/plan/training_spec.hpp"

namespace planner {

struct Job {
  costmodel::ClusterSpec cluster;
  costmodel::TrainingSpec training;
  costmodel::ParallelPlan plan;
  costmodel::Seconds data;  // for which an iteration waits for its batch; in the host's time too
  double slow_iterations = 0.01;  // the share of iterations that take much longer than the others
  bool one_node = false;          // the cluster's device is that of its slowest node alone
  bool grows = false;             // later iterations take longer and longer
};

// The value of a key in a job, as a log says it; nullopt for a key that is not known here.
std::optional<std::string> setting(const Job& job, std::string_view key);

// Sets a key. False where the key is unknown or the value is none of its own; the job is then as it
// was. Sizes that follow are settled: a change of tp, pp or cp changes dp.
bool set_setting(Job& job, std::string_view key, const std::string& value);

}  // namespace planner
