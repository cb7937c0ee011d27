// The report of `groups`: which ranks form which groups.
#pragma once

#include <string>

#include "costmodel/machine/cluster_spec.hpp"
#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/plan/process_groups.hpp"
#include "planner/report/plan_report.hpp"
#include "planner/report/table.hpp"

namespace planner {

struct GroupsOf {
  const costmodel::ParallelPlan& plan;
  costmodel::RankLayout layout = costmodel::RankLayout::megatron;
  const costmodel::ClusterSpec* cluster = nullptr;  // null: not said
};

// The tier that the worst-placed group of a kind crosses: "nvlink"; "" on no cluster or for groups
// of one.
std::string network_of(const costmodel::ProcessGroups& groups, const GroupsOf& of);

// For people: every kind with its groups, "[0,1] [2,3]"; of a long list the beginning, and how many
// are left out.
std::string groups_report(const GroupsOf& of, const ReportStyle& style);

// One row a group: kind, index, size, ranks.
Table groups_rows(const GroupsOf& of);

}  // namespace planner
