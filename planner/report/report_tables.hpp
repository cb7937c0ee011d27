// The tables in the reports of `plan` and `evaluate`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "costmodel/estimate/estimate.hpp"
#include "costmodel/model/model_spec.hpp"
#include "planner/diagnosis/reason.hpp"
#include "planner/report/table.hpp"
#include "planner/search/strategy.hpp"

namespace planner {

// "+2.5 %" for a ratio of 1.025.
std::string signed_percent(double ratio);
// "12.3 %" of a share.
std::string percent(double share);

// Parts of the iteration with their fractions, and bars that fit into lines of `width` columns.
Table time_table(const costmodel::Estimate& estimate, std::size_t width = unlimited_width,
                 const std::optional<BusiestRank>& busiest = {});

// Layers, times and memory of each pipeline rank; equal neighbours share a row.
Table stage_table(const costmodel::Estimate& estimate, const costmodel::ModelSpec& model);

// The bytes that each device of a pipeline rank sends; equal neighbours share a row, and without
// any there are no rows.
Table traffic_table(const costmodel::Estimate& estimate);

// The ranking for people, members after their family's row: 1, 1.2, 1.3, 2. `pair_spread`: see
// costmodel::ErrorBand.
Table ranking_table(const std::vector<costmodel::Estimate>& plans, double pair_spread,
                    const FamilyMembers& members = {});

// The memory front likewise, with what each plan leaves free on the fullest device.
Table front_table(const std::vector<costmodel::Estimate>& front, double pair_spread);

// The ranking for programs: plain numbers in base units (memory in GiB), one row per plan. `role`:
// the chosen plan; the fastest, where that is another one, with a row of rank 1 if the ranking has
// none of it; a member of a family.
Table ranking_rows(const std::vector<costmodel::Estimate>& plans,
                   const costmodel::PeakErrors& errors,
                   const std::optional<costmodel::Estimate>& fastest = {},
                   const FamilyMembers& members = {});

// The plans one step away, compared with the best plan.
Table step_table(const std::vector<Step>& steps, const costmodel::Estimate& best);

}  // namespace planner
