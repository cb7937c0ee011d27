// A scenario's line of a batch's index, as a JSON object: what its report says at a glance.
#pragma once

#include <string>
#include <vector>

#include "planner/report/table.hpp"

namespace planner {

// What became of a scenario. `no_plan`: nothing fits, and the report says what
// would; or the scenario's own plan does not.
enum class JobState { done, no_plan, failed, not_done };

// The line of a report, which is the JSON of plan, evaluate, explain, sweep, compare or simulate
// ("" where there is none); the row is "" where the report is none of these. `message`: why it
// failed. Figures that the report lacks are null: iteration_s with its interval, tokens_per_s, mfu,
// peak_bytes, capacity_bytes, devices, plan; of a sweep they are the fastest point's that fits.
std::string index_row(const std::string& name, const std::string& command, JobState state,
                      const std::string& report, const std::string& message);

// The lines together, {"scenarios": [...]} with counts by state.
std::string index_json(const std::vector<std::string>& rows);

// The same as a table for text, Markdown and CSV, its last column the message. `for_people`: fewer
// digits, units chosen to read.
Table index_table(const std::vector<std::string>& rows, bool for_people);

}  // namespace planner
