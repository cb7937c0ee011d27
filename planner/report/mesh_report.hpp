// The report of `plan` for heterogeneous stages or devices.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "costmodel/scenario/scenario.hpp"
#include "planner/report/plan_report.hpp"
#include "planner/report/table.hpp"
#include "planner/search/mesh_search.hpp"

namespace planner {

// One row per plan. Stages appear as "t x d x layers on group", followed by context and expert
// parallelism if any ("c 2 (p2p) e 4"); replicas as "t x p x d x m on group".
Table mesh_rows(const MeshSearch& found);

// One sentence per line: what was searched, what is proved, what was not searched.
std::vector<std::string> mesh_sentences(const MeshSearch& found, const costmodel::Scenario& s);

// `remark` is appended to the report, if not empty.
std::string mesh_report(const MeshSearch& found, const costmodel::Scenario& scenario,
                        std::optional<double> seconds, const ReportStyle& style,
                        const std::string& remark = {});

}  // namespace planner
