// `--over`: evaluates every combination of some keys' values, one row per point.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "costmodel/config/search_path.hpp"
#include "costmodel/config/value.hpp"
#include "planner/commands/options.hpp"
#include "planner/commands/session.hpp"
#include "planner/report/table.hpp"

namespace planner {

// "tp=1,2,4" -> key path "plan.tp" and its values. A key without a dot is a key of the plan, or
// `model` or `cluster`.
struct Axis {
  std::string path;
  std::vector<std::string> values;
};
Axis parse_axis(const std::string& over);

// The axes of `--over`. Throws ConfigError for none, or too many points.
std::vector<Axis> axes_of(const Options& options);
// Sets the axes to the values of a point; the last axis varies fastest. Returns the values.
std::vector<std::string> place(const std::vector<Axis>& axes, std::size_t point,
                               costmodel::Value& value);

struct Swept {
  Table table;
  std::vector<std::string> notes;  // which plan points have that the scenario does not give one
  std::size_t unreadable = 0;      // points whose values are bad input
};

// A point that breaks a rule or lacks memory is a row that says so. Where the scenario leaves the
// plan, or keys of it, to defaults or to the search, each row tells its plan. Throws ConfigError
// when no point can be read. Once `stopped` returns true, no further point is evaluated.
Swept sweep(const std::string& file, const costmodel::ConfigPath& path, const Options& options,
            const std::function<bool()>& stopped = {});

// `shardplan sweep`.
CommandResult sweep_command(const Session& session);

// Whether any row of a sweep is not an error.
bool any_answer(const Table& swept);

}  // namespace planner
