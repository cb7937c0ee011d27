// Input and output of a command, and functions that several commands share.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/config/search_path.hpp"
#include "costmodel/config/value.hpp"
#include "costmodel/estimate/estimate.hpp"
#include "costmodel/machine/cluster_spec.hpp"
#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "costmodel/serving/serving_spec.hpp"
#include "planner/commands/options.hpp"
#include "planner/diagnosis/remedies.hpp"
#include "planner/exchange/imported_job.hpp"
#include "planner/logs/training_log.hpp"
#include "planner/report/plan_report.hpp"
#include "planner/report/table.hpp"
#include "planner/search/settled_plan.hpp"
#include "planner/search/strategy.hpp"

namespace planner {

// Exit status when there is no answer: no plan fits in memory.
inline constexpr int no_answer = 3;
// When a part of the input is bad and the rest is answered; all of it is a ConfigError.
inline constexpr int bad_input = 2;

struct CommandResult {
  int status = 0;
  std::string text;
  std::vector<std::string> warnings;  // to standard error, unless --quiet
  // To standard error: why there is no text in the requested format. Nothing is then written to
  // standard output or --out.
  std::string failure = {};
  std::string page = {};  // the report as HTML, if wants_page()
};

// The input of a command.
struct Session {
  const Options& options;
  ReportStyle style;
  costmodel::ConfigPath path;
};

// The scenario file named on the command line, or what scenario_operand() makes of a model, and the
// scenario with `--set` applied. Both throw costmodel::ConfigError; load() also when an output
// cannot be written, or is the scenario's file.
std::string file_of(const Session& session);
costmodel::Scenario load(const Session& session);

// Throws ConfigError when a file that the command is to write cannot be written, or is an input.
void require_outputs(const Options& options);

// Those of --threads, or one a core.
int threads_of(const Options& options);

costmodel::Evaluator evaluator_of(const costmodel::Scenario& scenario);

// A cluster of one kind of devices by its name in configs/, with so many devices (0: as its file
// says, or as its last tier joins). Throws ConfigError.
costmodel::ClusterSpec cluster_named(const Session& session, const std::string& name,
                                     std::int64_t devices);

// The scenario as YAML with the plan written out; it can be loaded again.
std::string scenario_yaml(const Session& session, const costmodel::Scenario& s,
                          const costmodel::ParallelPlan& plan);

// A table in the requested format, text in lines of at most `width` columns.
std::string printed(const Table& table, Format format, std::size_t width);

// Whether the report is printed or written as a page of HTML.
bool wants_page(const Options& options);
// The page, where it is wanted: of the report's JSON and of its best plan, null for none, whose
// schedule it draws.
std::string page_of(const Session& session, const costmodel::Scenario& scenario,
                    const std::function<std::string()>& json,
                    const costmodel::ParallelPlan* plan = nullptr);

// Whether the output is for people, not for a program.
bool is_for_people(const Options& options);

// The report of the search over stages or devices that differ, without a plan too. `remark` is
// added to it, if not empty.
CommandResult mesh_result(const Session& session, const costmodel::Scenario& scenario,
                          const MeshSearch& found, std::optional<double> seconds,
                          const std::string& remark = {});

// Stacks by which the session's scenario may be read again. The session must outlive them.
OtherStacks other_stacks(const Session& session);

// Results without a plan: a report, or a failure when the output is for a program.
CommandResult unanswered(const Session& session, std::string report);
// `stopped`: as for diagnose().
CommandResult no_plan(const Session& session, const costmodel::Scenario& scenario,
                      const SearchResult& found, std::optional<double> seconds,
                      const std::function<bool()>& stopped = {});

// The same where no choice of a plan's keys that are auto obeys the rules.
// `leanest`: a plan some of whose keys no choice makes fit; named where other keys would fit.
CommandResult without_plan(const Session& session, const costmodel::Scenario& scenario,
                           const SettledPlan* leanest = nullptr);

// Implements --placement FILE.
void write_placement(const Session& session, const costmodel::Scenario& scenario,
                     const costmodel::ParallelPlan& plan);

// Of a scenario of serving (`workload: inference`). Throws ConfigError for a flag that goes with
// training alone.
void refuse_training_flags(const Options& options);

// The scenario named on the command line with `--set` applied. Throws ConfigError, also for a flag
// of training and when an output cannot be written, or is the scenario's file.
costmodel::ServingScenario load_serving(const Session& session);

// The plan, formats and limits of `chosen` in a scenario's tree.
void set_served(costmodel::Value& root, const costmodel::ServingScenario& chosen);

// The scenario as YAML with the plan of `chosen` written out; it can be loaded again.
std::string serving_yaml(const Session& session, const costmodel::ServingScenario& chosen);

// The result where no plan fits and keeps what is asked: what would help.
CommandResult without_serving_plan(const Session& session,
                                   const costmodel::ServingScenario& scenario);

// One warning per line, if the plan does not fit: names the stage that is fullest relative to its
// own devices.
std::vector<std::string> memory_warnings(const costmodel::Estimate& estimate);

// memory_warnings(), and, for the two commands that then use the best plan, that the scenario has
// no plan.
std::vector<std::string> plan_warnings(const Options& options, const costmodel::Scenario& scenario,
                                       const costmodel::Estimate& estimate);

// Notes as lines for standard error.
std::vector<std::string> note_lines(const std::vector<std::string>& notes);

// A job as an operand of a command: a scenario, or a framework's own words.
struct JobOperand {
  costmodel::Scenario scenario;
  costmodel::Value written;  // the map of the scenario, with --set and --cluster
};

// The job that `operand` describes. Notes and what was left out go to `told`. Throws ConfigError
// for the first key that a prediction needs and nobody says.
JobOperand read_job_operand(const Session& session, const std::string& operand,
                            std::vector<std::string>& told,
                            const std::vector<LoggedSetting>& logged = {});

}  // namespace planner
