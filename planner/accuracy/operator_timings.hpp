// Operators that were timed one by one, held against their prices: `shardplan validate` of a table
// as scripts/gpu-operators.py writes it (configs/kernels/pytorch-operators.csv).
#pragma once

#include <string>
#include <vector>

#include "costmodel/base/units.hpp"
#include "costmodel/config/search_path.hpp"
#include "planner/report/table.hpp"

namespace planner {

struct OperatorTiming {
  std::string name, direction;
  std::string sizes;  // as the table has them, with their columns' names
  costmodel::Seconds measured;
  costmodel::Seconds priced;  // 0: nothing prices this operator by itself
};

// The rows of `device`; a table without a column of devices is of that one. Throws ConfigError for
// what is no such table.
std::vector<OperatorTiming> operator_timings(const std::string& file, const std::string& device,
                                             const costmodel::ConfigPath& path);

// A row a group: an operator in one direction.
struct OperatorGroup {
  std::string name, direction;
  int rows = 0;
  double mean = 0, bias = 0, largest = 0;  // in per cent of what was measured
};
std::vector<OperatorGroup> operator_groups(const std::vector<OperatorTiming>& timings);

Table operator_table(const std::vector<OperatorGroup>& groups);
// Every timing that has a price.
Table operator_table(const std::vector<OperatorTiming>& timings);

}  // namespace planner
