// Explains a plan whose groups hold replicas with unequal shares of the batch: each group as a plan
// of its own, then the terms that all groups share.
#pragma once

#include <vector>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/plan/replica_groups.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/report/explain_stages.hpp"

namespace planner {

// The scenario of one group alone, with its share of the batch.
costmodel::Scenario scenario_of(const costmodel::ReplicaPart& part, std::size_t group,
                                const costmodel::Scenario& scenario);

// The common terms: each group's share and the time of its reduction, the sum over the groups, the
// iteration.
std::vector<Explained> explained_groups(const costmodel::ParallelPlan& plan,
                                        const costmodel::Scenario& scenario);

}  // namespace planner
