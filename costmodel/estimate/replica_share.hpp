// What each group of a mixed cluster takes of an iteration when all groups hold replicas of the
// model, and when it ends. Data alone; replica_cost.hpp prices it.
#pragma once

#include <cstdint>

#include "costmodel/base/units.hpp"
#include "costmodel/plan/parallel_plan.hpp"

namespace costmodel {

// The work of one group in an iteration.
struct ReplicaShare {
  ParallelPlan plan;               // the group's plan, on all of its devices
  std::int64_t micro_batches = 1;  // per replica; it has plan.dp

  std::int64_t sequences() const { return plan.dp * plan.micro_batch * micro_batches; }
  bool operator==(const ReplicaShare&) const = default;
};

// The end of an iteration of one group.
struct ReplicaEnd {
  Seconds meeting;  // time when its own gradients are reduced
  Seconds optimizer, gather;
};

}  // namespace costmodel
