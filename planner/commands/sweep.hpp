// `--over`: evaluates every combination of some keys' values, one row per point.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "costmodel/config/search_path.hpp"
#include "costmodel/config/value.hpp"
#include "planner/batch/json_points_kept.hpp"
#include "planner/commands/options.hpp"
#include "planner/commands/session.hpp"
#include "planner/commands/sweep_axes.hpp"
#include "planner/report/table.hpp"

namespace planner {

// How the points of a workload are read and priced. What is wrong with a scenario is thrown when it
// is read, and a point's `error` when it is priced.
using PricedPoint = std::function<SweptPoint(int threads)>;
struct SweptWorkload {
  costmodel::Value root;  // without the values of axes
  std::function<PricedPoint(const costmodel::Value& scenario)> read;
  // What else a point's values change; where it cannot, the point has an error, and no input is
  // bad.
  std::function<void(const std::vector<std::string>& values, costmodel::Value& scenario)> adjust =
      {};
};

struct SweptPoints {
  std::vector<Axis> axes;
  std::vector<std::vector<std::string>> values;  // of the axes, by point
  std::vector<SweptPoint> points;
  std::size_t unreadable = 0;  // whose values are bad input
};

// Every combination of the values of --over, or those of --shard; those that --journal has are not
// priced again. A point that cannot be read has an error. Throws ConfigError when none can. Once
// `stopped` returns true, no further point is priced.
SweptPoints sweep_points(const Options& options, const SweptWorkload& workload,
                         const std::function<bool()>& stopped);

// A row a point: the axes, the workload's columns, the plans where `with_plans`, and the errors.
Table sweep_table(const SweptPoints& swept, const std::vector<Column>& columns, bool with_plans);

struct Swept {
  Table table;
  std::vector<std::string> notes;  // which plan points have that the scenario does not give one
  std::size_t unreadable = 0;      // points whose values are bad input
};

// The points of a scenario of training. One that breaks a rule or lacks memory is a row that says
// so. Where the scenario leaves the plan, or keys of it, to defaults or to the search, each row
// tells its plan.
Swept sweep(const std::string& file, const costmodel::ConfigPath& path, const Options& options,
            const std::function<bool()>& stopped = {});

// `shardplan sweep`.
CommandResult sweep_command(const Session& session);

// The command's result: `sweep_until` sweeps the session's scenario, by its workload.
using SweepUntil = std::function<Swept(const std::function<bool()>& stopped)>;
CommandResult sweep_result(const Session& session, const SweepUntil& sweep_until);

// Whether any row of a sweep is not an error.
bool any_answer(const Table& swept);

// As sweep() does for training, of a scenario of serving. A plan that is left open is searched at
// every point.
Swept sweep_serving(const Session& session, const std::function<bool()>& stopped);

CommandResult sweep_serving_command(const Session& session);

}  // namespace planner
