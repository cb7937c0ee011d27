// The tables of the reports of `plan` and `evaluate`, each a plan's or a ranking's rows of text.
#pragma once

#include <string>
#include <vector>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/model/model_spec.hpp"
#include "planner/diagnosis/reason.hpp"
#include "planner/report/table.hpp"

namespace planner {

// "+2.5 %" of a ratio of 1.025.
std::string signed_percent(double ratio);

// Where the time goes: parts of the iteration with their shares and bars.
Table time_table(const costmodel::Estimate& estimate);

// Layers, times and memory of each pipeline rank; equal neighbours share a line.
Table stage_table(const costmodel::Estimate& estimate, const costmodel::ModelSpec& model);

// What the busiest device sends; no rows where it sends nothing.
Table traffic_table(const costmodel::Estimate& estimate);

// `pair_spread`: see costmodel::ErrorBand.
Table ranking_table(const std::vector<costmodel::Estimate>& plans, double pair_spread);

// The same for programs: plain numbers in base units (memory in GiB), one row a plan.
Table ranking_rows(const std::vector<costmodel::Estimate>& plans);

// What each knob one step away would cost, against the best plan.
Table step_table(const std::vector<Step>& steps, const costmodel::Estimate& best);

}  // namespace planner
