// Reads a launch script the way bash splits it into words, without running it: assignments, arrays,
// quotes, ${NAME:-default}, $((arithmetic)) and line continuations are followed in the order
// written. A condition that the script's own words decide is followed; of others, and of loops, the
// lines of every branch count, in their order.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/base/error.hpp"

namespace planner {

struct ShellWord {
  std::string text;
  costmodel::Mark mark;
  std::string
      unknown;  // what of the word the script does not say: "$NODES", "$(hostname)"; else ""
};
using ShellWords = std::vector<ShellWord>;
using ShellVariables = std::map<std::string, ShellWords>;

struct ShellScript {
  std::vector<ShellWords> commands;  // other than assignments; a pipe or `&&` begins another one
  std::vector<ShellVariables> environments;  // of each command: what is assigned in front of it
  ShellVariables variables;                  // as they stand at the end; of an array, its items
  std::vector<std::string> comments;         // without their '#'
  std::string call;       // of the script, in a comment before all else: its arguments are read
  bool branches = false;  // it has loops, functions, or conditions that are not decided
};

// The text of a file that `source` names; nothing where there is none, or where it is not read.
using SourcedFile = std::function<std::optional<std::string>(const std::string& name)>;

// Throws costmodel::ConfigError for a quote or a bracket that is not closed, nesting deeper than
// 64, and words that grow beyond 1 MiB.
ShellScript read_shell(const std::string& text, const std::string& file,
                       const SourcedFile& sourced = {});

}  // namespace planner
