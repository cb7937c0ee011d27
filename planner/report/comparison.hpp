// Predictions side by side: what differs in the input, the iteration part by part, and why one is
// faster than the first.
#pragma once

#include <string>
#include <vector>

#include "costmodel/config/value.hpp"
#include "costmodel/estimate/estimate.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/report/plan_report.hpp"
#include "planner/report/table.hpp"

namespace planner {

// A column of the comparison.
struct Compared {
  std::string name;        // distinct
  costmodel::Value input;  // the scenario as written, with its plan resolved
  costmodel::Scenario scenario;
  costmodel::Estimate estimate;
};

// An input whose value differs. A value that a column lacks is "".
struct Difference {
  std::string key;                  // "training.global_batch"
  std::vector<std::string> values;  // by column
};
std::vector<Difference> differences(const std::vector<const costmodel::Value*>& inputs);
// Of columns with a name and an input: of training, and of serving.
template <class Column = Compared>
std::vector<Difference> differences(const std::vector<Column>& columns) {
  std::vector<const costmodel::Value*> inputs;
  for (const Column& column : columns) inputs.push_back(&column.input);
  return differences(inputs);
}

// A table with these columns after one that is called `first`, without rows.
template <class Column>
Table titled(const char* first, const std::vector<Column>& columns, bool numbers) {
  Table table{{left(first)}};
  for (const Column& column : columns) table.columns.push_back({column.name, numbers});
  return table;
}
// Adds a row for each; `absent` stands for a value that a column lacks.
void add_differences(Table& table, const std::vector<Difference>& differing, const char* absent);

// How a column compares with the first.
struct Against {
  // The time of the first's tokens; the column's iteration time where both have as many tokens.
  costmodel::Seconds same_tokens;
  double speedup = 1;  // the first's iteration time / same_tokens
  // The probability that it is really faster, where only the plans differ: the intervals of unlike
  // inputs do not say it. Negative: unknown.
  double probability_faster = -1;
  std::string sentence;
};
Against against(const Compared& first, const Compared& other, bool only_plans_differ);

// Whether nothing but the plan differs.
bool only_plans_differ(const std::vector<Difference>& differing);

// All rows for programs: times in seconds, memory in GiB, fractions.
Table comparison_rows(const std::vector<Compared>& columns);

std::string comparison_report(const std::vector<Compared>& columns, const ReportStyle& style);

}  // namespace planner
