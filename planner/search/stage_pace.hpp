// How the length of a pipeline sets the pace of its stages.
#pragma once

#include <cstdint>

#include "costmodel/machine/cluster_spec.hpp"
#include "planner/solvers/stage_slicing.hpp"

namespace planner {

// The same option in a pipeline of `stages` stages, or of fewer than that but no fewer than it is
// priced in: a lower bound of its times. Devices that wait more compute faster (idle boost, sharing
// of a node); what does not compute stays as long or becomes longer.
StageOption in_pipeline(StageOption option, const costmodel::ClusterSpec& devices,
                        std::int64_t micro_batches, int stages);

// Whether such times differ much between pipelines of so many stages.
bool waits_differ(const costmodel::ClusterSpec& devices, std::int64_t micro_batches, int few,
                  int many);

}  // namespace planner
