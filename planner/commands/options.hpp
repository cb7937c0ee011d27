// What the command line of `shardplan` says. Its commands are the records of commands.cpp, its
// flags those of options.cpp; parsing, help and error messages come from both.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/cli/command_line.hpp"
#include "planner/batch/child.hpp"
#include "planner/batch/shard.hpp"
#include "planner/search/device_ladder.hpp"

namespace planner {

enum class Format { text, json, yaml, csv, md, html, svg };

// Parallel sizes on the command line; 0: not given.
struct GroupSizes {
  int tp = 0, pp = 0, dp = 0, cp = 0, ep = 0, etp = 0;
  bool any() const { return (tp | pp | dp | cp | ep | etp) != 0; }
};

// A program that runs commands as functions, as the Python module does: what it gives in place of
// files, and how it ends a command early and learns how far a sweep is.
struct Caller {
  std::map<std::string, std::string> documents;  // YAML by an operand's name: document_name()
  std::string program;                           // its file, or the library's
  bool page = false;                             // the report as HTML too
  std::atomic<int> signal{0};                    // what came to it
  std::atomic<std::size_t> done{0}, points{0};
};

// The operand that stands for a document of a caller. Two slashes: no file has this name, whose
// stem names the scenario.
inline std::string document_name(const std::string& stem) { return "//" + stem + ".yaml"; }

struct Options {
  std::string command;
  std::vector<std::string> operands;
  Format format = Format::text;
  std::string out;  // empty: standard output
  std::vector<std::string> config_path, allow_path;
  std::vector<std::string> assignments;  // --set
  std::vector<std::string> over;         // --over
  std::vector<std::string> with;         // --with
  bool weak = false;                     // the batch grows with the devices swept
  std::string trace;
  std::string write_schedule;
  bool compare_schedules = false;  // --compare
  std::string placement;
  std::string page;
  std::string to;
  std::string launcher;           // of an exported script; empty: torchrun
  std::vector<std::string> site;  // KEY=VALUE, of what starts it
  std::string save_dir;           // of an export's files; empty: one script
  std::string for_version;        // of the framework; empty: the newest
  std::string recipe;             // of a Python file that is imported
  bool partial = false;           // an imported config.json may be of an unknown family
  std::string cluster;            // of an imported job, or of a scenario; empty: not said
  // A scenario in words, each empty where nothing is said: scenario_words.hpp.
  std::string model, gpus, batch, sequence, precision, framework;
  std::size_t derived = 0;    // how many of the assignments, at their front, stand for these
  double fail_above = 0;      // per cent; 0: never
  int top = 0;                // 0: the scenario's
  RunLimits limits;           // --deadline, --budget
  bool reproducible = false;  // no wall-clock time in the report
  bool all = false;           // the members of each family of the ranking too
  bool front = false;         // the fronts of memory, devices and cost too
  bool sensitivity = false, upgrades = false;
  std::string strategy;            // empty: the usual one
  double time_limit = 0;           // seconds; 0: none
  int threads = 0;                 // 0: one per core
  std::string write_residuals;     // a file; empty: none
  std::vector<std::string> peaks;  // evidence whose peaks of memory count in the table written
  std::string notes;               // a file; empty: none
  bool rows = false;
  bool memory = false;  // of explain: over an iteration
  bool against_planner = false;
  std::string fit;   // file of constants
  ChildLimits each;  // of a batch: what a scenario may take
  bool leave_one_source_out = false;
  int runs_known = 0;                   // 0: not asked for
  std::vector<std::string> from_log;    // --from-log of calibrate: [JOB:]LOG
  std::vector<std::string> from_trace;  // --from-trace of calibrate: [JOB:]TRACE
  std::vector<std::string> traces;      // --traces of validate
  std::string calibrated;               // --calibrated: a cluster's file by calibrate
  std::string job;                      // --job: of logs without one
  std::string profile;                  // --out of calibrate
  bool fits_constants() const {
    return !fit.empty() || leave_one_source_out || runs_known > 0 || !write_residuals.empty();
  }
  GroupSizes sizes;           // of `groups`
  std::string layout;         // of `groups`; empty: Megatron-LM's
  std::string order;          // of the ranks; empty: the default
  std::string bytes;          // of `collective`: SIZE or FROM:TO:FACTOR
  std::string ranks, stride;  // of `collective`; empty: all of the cluster, neighbours
  bool table = false;         // of `collective`: the usual sizes
  std::string list_inputs;    // a file; empty: none
  std::string folder;         // --out of batch
  std::string command_words;  // --command of batch
  int jobs = 0;               // 0: one per core
  Shard shard;                // of a batch or a sweep
  std::string journal;        // of a sweep: the folder of its points; empty: none is kept
  bool fail_fast = false, force = false;
  bool quiet = false;
  std::string color = "auto";
  bool help = false;
  bool version = false;
  Caller* caller = nullptr;  // null: this process is the command's own
};

// The commands that take a scenario, or a model and words, and `init`, which writes one.
inline constexpr std::string_view scenario_commands =
    "plan evaluate explain sweep compare batch simulate groups export init";

// The flags of all commands.
std::vector<costmodel::Flag> flags();

// Throws ConfigError where what the command line asks for is wrong.
void refuse_if(bool wrong, const std::string& what, const std::string& remedy);

// What names the scenario on the command line, for a command that does something else with it: its
// operand, the words above and --set.
std::string scenario_text(const Options& options);

// Throws ConfigError for bad usage: an unknown command or flag (with the nearest known one),
// missing or superfluous operands, a format that the command does not offer.
Options parse_command_line(const costmodel::Program& program, int count,
                           const char* const* arguments);

}  // namespace planner
