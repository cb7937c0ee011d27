// Shardplan in one header, for programs that find the installed package (shardplan::planner):
//
//   const shardplan::Answer found = shardplan::run({"plan", "llama-3-70b", "--gpus", "64xh100"});
//   std::puts(found.text.c_str());
//
// run() is stable: the words, the JSON and the status are those of the command line, by the rules
// of docs/schema.md. What it is made of may change with a version: planner::evaluate_many() prices
// plans by columns, planner::run_strategies() searches, and costmodel/costmodel.hpp, which is
// installed too, evaluates.
//
// Inside Shardplan nothing includes this header: a file there includes what it uses.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "planner/commands/commands.hpp"
#include "planner/search/many_plans.hpp"
#include "planner/search/strategy.hpp"

namespace shardplan {

struct Answer {
  int status = 0;                     // the command's exit status
  std::string text;                   // what it prints to standard output
  std::vector<std::string> warnings;  // and to standard error
  std::string failure;                // why there is no text
};

// A command by its words. `documents` are scenarios as YAML by a name, which stands in the words as
// planner::document_name() makes it. Thread-safe. Throws costmodel::ConfigError for bad input.
inline Answer run(const std::vector<std::string>& words,
                  std::map<std::string, std::string> documents = {}) {
  planner::Caller caller;
  for (auto& [name, text] : documents)
    caller.documents.emplace(planner::document_name(name), std::move(text));
  std::vector<const char*> arguments{"shardplan"};
  for (const auto& word : words) arguments.push_back(word.c_str());
  planner::Options options = planner::parse_command_line(
      planner::shardplan(), static_cast<int>(arguments.size()), arguments.data());
  options.caller = &caller;
  planner::CommandResult result = planner::run_command(options, {});
  return {result.status, std::move(result.text), std::move(result.warnings),
          std::move(result.failure)};
}

}  // namespace shardplan
