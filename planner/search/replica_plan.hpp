// Converts the result of the replica search to a plan.
#pragma once

#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/search/mesh_search.hpp"

namespace planner {

// `found` must have shares.
costmodel::ParallelPlan replica_plan(const ReplicaSearch& found,
                                     const costmodel::Scenario& scenario);

// Inserts the replica plan into the ranking of plans by time. The other plans stay the best
// pipelines through all groups.
void rank_replicas(MeshSearch& found, const costmodel::Scenario& scenario);

// Time of the best plan that is one pipeline through all groups; 0: there is none.
costmodel::Seconds best_pipeline(const MeshSearch& found);

}  // namespace planner
