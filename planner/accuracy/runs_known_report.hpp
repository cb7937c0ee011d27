// What knowing a few runs of a source tells of its others, printed.
#pragma once

#include <string>

#include "planner/accuracy/runs_known.hpp"
#include "planner/report/table.hpp"

namespace planner {

// A row a source, and last their mean.
Table known_table(const RunsKnown& result);

// The same with what the figures are and the prior behind them. `table` is that table as printed.
std::string known_report(const RunsKnown& result, const std::string& table);

}  // namespace planner
