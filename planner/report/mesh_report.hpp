// The report of `plan` for heterogeneous stages or devices, and the placement of a plan's ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/machine/cluster_spec.hpp"
#include "costmodel/plan/parallel_plan.hpp"
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

// Where a rank lies.
struct PlacedRank {
  std::int64_t rank = 0;
  int stage = 0, tp = 0, cp = 0, dp = 0;  // coordinates
  int ep = 0, etp = 0;                    // expert coordinates
  std::string group;                      // group of the cluster; empty with one kind of device
  std::int64_t node = 0, device = 0;      // node within the group, device within the node
};

// The placement of a valid plan, by rank. Ranks are numbered by the plan's rank_order; with
// heterogeneous stages stage by stage, within each tp fastest, then cp, then dp; several pipelines
// one after the other, with coordinates relative to the pipeline.
std::vector<PlacedRank> placement(const costmodel::ParallelPlan& plan,
                                  const costmodel::ClusterSpec& cluster);

}  // namespace planner
