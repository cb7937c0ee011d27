// `shardplan calibrate --backend cpu`: measures this machine and writes its profiles.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "calibrate/commands/cpu_tasks.hpp"

namespace calibrate {

struct CpuRequest {
  std::string out;          // the device's file
  std::string cluster_out;  // the cluster's; "": none
  bool quick = false;
  double minutes = 3;          // about: a task begun is ended
  std::string command;         // as the profile tells it
  std::optional<Ranks> ranks;  // whose messages; not said: threads', one a core
  // Before each task: how many are done, of how many, its name, seconds left.
  std::function<void(std::size_t, std::size_t, const std::string&, double)> progress;
};

// Runs the tasks that `part` has not, each with its share of the time that is left.
void run_tasks(const std::vector<Task>& tasks, costmodel::Seconds time, PartFile& part,
               const Clock& clock,
               const std::function<void(std::size_t, const std::string&, double)>& progress);

// Writes the profiles; raw measurements stand in `out`.part until then. Throws ConfigError when a
// file cannot be written. Returns a sentence on what was measured.
std::string calibrate_cpu(const CpuRequest& request);

}  // namespace calibrate
