// Commands of pages that are not run, and why; and the help by which every command's flags are
// checked.
#pragma once

#include <array>
#include <cstdio>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <string_view>

#include "tests/run_program.hpp"

namespace documents {

struct NotRun {
  std::string_view words;  // a command that holds these
  std::string_view why;
};

// Their flags are checked all the same.
inline constexpr std::array<NotRun, 21> not_run{{
    {"git clone", "needs a network"},
    {"scripts/test", "runs this test"},
    {"scripts/gpu-", "builds, or needs a GPU"},
    {"tar xzf", "belongs to what scripts/gpu-kit packs"},
    {"ctest --", "runs this test"},
    {"bench --benchmark_filter", "measures"},
    {"calibrate --backend", "measures this machine, or needs a GPU"},
    {"mpirun", "needs MPI"},
    {"torchrun", "needs torchrun"},
    {"export SHARDPLAN_TOKEN", "belongs to torchrun"},
    {"--backend cuda", "needs a GPU"},
    {"shardplan run", "takes seconds, and prints this machine's times; tests/runtime/run runs it"},
    {"--leave-one-source-out", "a minute"},
    {"--against-planner", "half a minute"},
    {"--write-residuals", "a minute, and writes into configs"},
    {"calibrate --stack megatron-core-2026 --from configs/microbench/*.yaml", "some seconds"},
    {"--from-trace", "needs a GPU's trace; from_trace_command_test.cpp writes one"},
    {"--calibrated mine.yaml", "needs what --from-trace writes of a GPU's trace"},
    {"import trace", "needs a GPU's trace; trace_rows_test.cpp writes one"},
    {"rank0.json.gz", "needs a GPU's trace; explain_trace_command_test.cpp writes one"},
    {"validate configs/evidence", "some seconds: the page of its output is compared as a whole"},
}};

inline const NotRun* reason_not_to_run(const std::string& command) {
  for (const NotRun& entry : not_run)
    if (command.find(entry.words) != std::string::npos) return &entry;
  return nullptr;
}

// What a shell prints that is given the command, errors too.
inline program::Run typed(const std::string& command, const std::string& folder) {
  const std::string line =
      "cd '" + folder +
      "' && unset SHARDPLAN_UPDATE_GOLDEN SHARDPLAN_CONFIG_PATH COLUMNS && PATH=\"" + folder +
      "/scripts:$PATH\" && { " + command + "\n} 2>&1 </dev/null";
  std::FILE* pipe = popen(line.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("no shell");
  program::Run result;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) result.out += static_cast<char>(c);
  const int state = pclose(pipe);
  result.status = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
  return result;
}

// "" for a name that is no command.
inline const std::string& help_of(const std::string& command) {
  static std::map<std::string, std::string> known;
  if (const auto found = known.find(command); found != known.end()) return found->second;
  const program::Scratch scratch;
  const auto run = program::run({command, "--help"}, scratch);
  return known[command] = run.status == 0 ? run.out : "";
}

// A flag among `rest` that the help of a command does not have, or "".
inline std::string unknown_flag(const std::string& help, const std::string& rest) {
  static const std::regex flag(" (--[a-z-]+)");
  for (auto it = std::sregex_iterator(rest.begin(), rest.end(), flag); it != std::sregex_iterator();
       ++it) {
    const std::string name = (*it)[1].str();
    if (!std::regex_search(help, std::regex("(^|[^a-z-])" + name + "([^a-z-]|$)"))) return name;
  }
  return "";
}

// What is wrong with a line that calls shardplan: a command or a flag that there is not; "" where
// nothing is.
inline std::string fault_of(const std::string& text) {
  if (const auto next = text.find(" && "); next != std::string::npos) {
    const std::string fault = fault_of(text.substr(0, next));
    return fault.empty() ? fault_of(text.substr(next + 4)) : fault;
  }
  std::smatch found;
  static const std::regex shape("(^|[ /])shardplan ([a-z][a-z|-]*)(.*)");
  if (!std::regex_search(text, found, shape)) return "";
  std::istringstream commands(program::replaced(found[2].str(), "|", " "));
  for (std::string command; commands >> command;) {
    const std::string& help = help_of(command);
    if (help.empty()) return "no command '" + command + "'";
    if (const auto flag = unknown_flag(help, found[3].str()); !flag.empty())
      return command + " has no flag " + flag;
  }
  return "";
}

}  // namespace documents
