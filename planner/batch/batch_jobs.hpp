// The scenarios of a batch, and what is done with each.
#pragma once

#include <string>
#include <vector>

#include "costmodel/config/search_path.hpp"

namespace planner {

struct BatchJob {
  std::string name;                // of its report: NAME.json; unique in the batch
  std::string file;                // the scenario
  std::vector<std::string> words;  // the command and its flags: {"sweep", "--over", "tp=1,2"}
  std::string fault;               // why nothing can be done with it; empty: nothing is wrong
};

// Files, folders (their *.yaml and *.yml, not those of folders in them), patterns ("runs/*.yaml")
// and names of configs/scenarios, each file once, in the order given, a folder's and a pattern's by
// name. A scenario's own `command:` decides what is done, else `usual`. A report is named as its
// file, with as many of its folders as tell it from others. Throws costmodel::ConfigError for an
// operand that names no scenario, and for two files whose reports would have one name.
std::vector<BatchJob> batch_jobs(const std::vector<std::string>& operands, const std::string& usual,
                                 const costmodel::ConfigPath& path);

}  // namespace planner
