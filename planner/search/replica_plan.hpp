// What the search of replicas found, as a plan like any other.
#pragma once

#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/search/mesh_search.hpp"

namespace planner {

// Of a search that found shares.
costmodel::ParallelPlan replica_plan(const ReplicaSearch& found,
                                     const costmodel::Scenario& scenario);

// Puts the replicas that were found among the plans, by their time. The other plans stay the best
// pipelines through all groups.
void rank_replicas(MeshSearch& found, const costmodel::Scenario& scenario);

// Of the best plan that is one pipeline through all groups; 0: there is none.
costmodel::Seconds best_pipeline(const MeshSearch& found);

}  // namespace planner
