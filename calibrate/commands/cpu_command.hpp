// `shardplan calibrate --backend cpu`: measures this machine and writes its profiles.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "calibrate/commands/cpu_tasks.hpp"
#include "costmodel/config/search_path.hpp"
#include "runtime/run/backends.hpp"

namespace calibrate {

struct CpuRequest {
  std::string out;          // output file of the device
  std::string cluster_out;  // output file of the cluster; "": none
  bool quick = false;
  double minutes = 3;          // approximate: a started task is finished
  std::string command;         // recorded in the profile
  std::string scenario;        // whose shapes are measured too; "": none
  std::string profile;         // to which they are added; "": to a new one
  costmodel::ConfigPath path;  // of the two
  std::optional<Ranks> ranks;  // whose messages are measured; default: threads, one per core
  // Called before each task: tasks done, tasks in all, the task's name, seconds left.
  std::function<void(std::size_t, std::size_t, const std::string&, double)> progress;
  // Called with lines on what will be measured.
  std::function<void(const std::string&)> message;
};

// "; 60 s were asked for, ..." where a calibration took a tenth longer; else "".
std::string longer_than_asked(costmodel::Seconds asked, costmodel::Seconds took);

// "" or the flags of these two, for the header of the part file.
std::string shapes_asked(const CpuRequest& request);

// Which shapes of the scenario the profile lacks, in lines. Measures nothing.
std::string lacking_of(const CpuRequest& request, const runtime::Backend& backend);

// Runs the tasks missing in `part`, each for its share of the remaining time.
void run_tasks(const std::vector<Task>& tasks, costmodel::Seconds time, PartFile& part,
               const Clock& clock,
               const std::function<void(std::size_t, const std::string&, double)>& progress);

// Measures and writes the profiles; until then raw measurements are in `out`.part. Throws
// ConfigError when a file cannot be written. Returns a sentence on what was measured.
std::string calibrate_cpu(const CpuRequest& request);

}  // namespace calibrate
