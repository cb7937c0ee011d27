// What a command is given and what it returns, and what several commands do alike.
#pragma once

#include <string>
#include <vector>

#include "costmodel/config/search_path.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/commands/options.hpp"
#include "planner/report/plan_report.hpp"
#include "planner/report/table.hpp"
#include "planner/search/grid_search.hpp"

namespace planner {

// Exit status of a question that has no answer: no plan fits in memory.
inline constexpr int no_answer = 3;

struct CommandResult {
  int status = 0;
  std::string text;
  std::vector<std::string> warnings;  // to standard error, unless --quiet
  // To standard error: why there is no text in the format that was asked for. Nothing is then
  // written to standard output or --out.
  std::string failure = {};
};

// What a command works with.
struct Session {
  const Options& options;
  ReportStyle style;
  costmodel::ConfigPath path;
};

// The file of the scenario that the command line names, and what it says with `--set` applied.
// Throw costmodel::ConfigError.
std::string file_of(const Session& session);
costmodel::Scenario load(const Session& session);

costmodel::Evaluator evaluator_of(const costmodel::Scenario& scenario);

// The scenario with its plan written out, readable again.
std::string scenario_yaml(const Session& session, const costmodel::ParallelPlan& plan);

// A table in the format that was asked for.
std::string printed(const Table& table, Format format);

// Text that is read, not run or taken in by a program.
bool is_for_people(const Options& options);

// There is no plan, and why: a report, or, where a program reads, a failure.
CommandResult told(const Session& session, std::string report);
CommandResult no_plan(const Session& session, const costmodel::Scenario& scenario,
                      const SearchResult& found, double seconds);

// The same for a scenario without a plan of its own, whose best one was asked for.
CommandResult without_plan(const Session& session, const costmodel::Scenario& scenario);

// --placement FILE.
void write_placement(const Session& session, const costmodel::Scenario& scenario,
                     const costmodel::ParallelPlan& plan);

}  // namespace planner
