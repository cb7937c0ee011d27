// What explains a plan whose groups of devices hold replicas of unequal shares: every group as the
// plan that it is by itself, and then what all of them have together.
#pragma once

#include <vector>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/plan/replica_groups.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/report/explain_stages.hpp"

namespace planner {

// A group by itself, with its share of the batch.
costmodel::Scenario scenario_of(const costmodel::ReplicaPart& part, std::size_t group,
                                const costmodel::Scenario& scenario);

// Of the whole: each group's share and meeting, the sum over the groups, the iteration.
std::vector<Explained> explained_groups(const costmodel::ParallelPlan& plan,
                                        const costmodel::Scenario& scenario);

}  // namespace planner
