#include "planner/commands/doctor_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "costmodel/base/path.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/estimate/plan_estimate.hpp"
#include "planner/commands/help_command.hpp"
#include "planner/commands/listing.hpp"
#include "planner/report/table.hpp"
#include "planner/traces/nsight_reader.hpp"
#include "planner/traces/unpacked_file.hpp"

namespace planner {

using namespace costmodel;

namespace {

struct Finding {
  std::string what;
  bool well = true;  // what is optional is well without it
  std::string detail;
};

Finding of_program() {
  std::string version = version_text();
  version.pop_back();
#ifdef NDEBUG
  const char* const build = "without assertions";
#else
  const char* const build = "with assertions";
#endif
  return {"program", true,
          fmt::format("{}, {}, compiler {}, {}", version, program_file(), __VERSION__, build)};
}

// Each kind of file in configs/: how many there are, and whether all can be read.
Finding of_configs(const std::string& kind, const ConfigPath& path) {
  try {
    const Listing found = listing(kind, {}, path);
    std::string detail = format_integer(static_cast<std::int64_t>(found.table.rows.size()));
    for (const std::string& warning : found.warnings) detail += "; " + warning;
    return {"configs: " + kind, found.warnings.empty(), detail};
  } catch (const ConfigError& error) {
    return {"configs: " + kind, false, error.what()};
  }
}

Finding of_file(const std::string& what, const std::string& file, const std::string& without) {
  const std::string there = joined_path(folder_of(program_file()), file);
  return {what, true, path_exists(there) ? there : "not there: " + without};
}

Finding of_library(const std::string& what, bool there, const std::string& without) {
  return {what, true, there ? "compiled in" : "not compiled in: " + without};
}

Finding of_machine() {
  const bool driver = path_exists("/proc/driver/nvidia/version") || path_exists("/dev/nvidiactl");
  return {"machine", true,
          fmt::format("{} hardware threads; {}", std::thread::hardware_concurrency(),
                      driver ? "a driver of NVIDIA GPUs"
                             : "no driver of NVIDIA GPUs: run and calibrate have CPU threads and "
                               "emulated devices")};
}

// One shipped scenario: its parts add up, a printed plan reads back, and both times are one answer.
Finding of_self_test(const ConfigPath& path) {
  const std::string name = "gpt3-175b-1024-a100";
  try {
    const Scenario s = load_scenario(scenario_file(name, path), path, {});
    const ParallelPlan plan = resolve_plan(s);
    const Estimate once = estimate_of(s.model, s.cluster, s.training, plan);
    const Estimate again = estimate_of(s.model, s.cluster, s.training, plan);
    constexpr double rounding = 1e-9;
    const double parts = once.breakdown.total() / once.iteration;
    std::string fault;
    if (!(once.iteration.value > 0)) fault = "an iteration takes no time";
    if (std::abs(parts - 1) > rounding) fault = "parts of an iteration do not add up";
    if (once.iteration != again.iteration || once.peak != again.peak) fault = "two answers differ";
    if (once.iteration < once.interval.low || once.iteration > once.interval.high)
      fault = "a prediction is outside its own interval";
    return {"self-test", fault.empty(),
            fault.empty() ? fmt::format("{}: {} an iteration, {}", name,
                                        format_seconds(once.iteration), format_bytes(once.peak))
                          : name + ": " + fault};
  } catch (const ConfigError& error) {
    return {"self-test", false, error.what()};
  }
}

std::vector<Finding> findings(const ConfigPath& path) {
  std::vector<Finding> all{of_program(), of_machine()};
  all.push_back(
      {"configs", !path.directories.empty(), fmt::format("{}", fmt::join(path.directories, ", "))});
  for (const char* kind : {"models", "devices", "clusters", "stacks", "engines", "scenarios"})
    all.push_back(of_configs(kind, path));
  all.push_back(of_file("shardplan run", "shardplan-run", "plans are not executed here"));
  all.push_back(
      of_file("shardplan calibrate", "shardplan-calibrate", "no machine is measured here"));
  all.push_back(of_file("backend cuda", "libshardplan-cuda.so", "run and calibrate have no GPUs"));
  all.push_back(of_library("compressed traces", unpacks_files(), "unpack them first"));
  all.push_back(
      of_library("traces of Nsight Systems", reads_nsight(), "torch.profiler's are read"));
  all.push_back(of_self_test(path));
  return all;
}

}  // namespace

CommandResult doctor_command(const Session& session) {
  const auto all = findings(session.path);
  Table table{{left("what"), left("state"), left("detail")}};
  for (const Finding& one : all)
    table.rows.push_back({one.what, one.well ? "ok" : "WRONG", one.detail});
  const bool well = std::ranges::all_of(all, &Finding::well);
  return {
      well ? 0 : no_answer, printed(table, session.options.format, session.style.style.width), {}};
}

}  // namespace planner
