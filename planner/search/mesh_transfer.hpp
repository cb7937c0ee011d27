// Lower bounds on what passes between stages on submeshes, whatever is at the other end.
#pragma once

#include <cstdint>
#include <vector>

#include "costmodel/estimate/estimate.hpp"
#include "costmodel/scenario/scenario.hpp"

namespace planner {

class MeshTransfer {
 public:
  // `sequences` per micro-batch, over all replicas. The scenario must outlive this object.
  MeshTransfer(const costmodel::Scenario& scenario, std::int64_t sequences);

  // Of one transfer, in either direction, over the boundary before a layer (embedding first, loss
  // last), into or out of a stage on so many devices of a group: its devices send or receive all of
  // what passes, each its part. `join`: from or to another group.
  costmodel::Seconds least(int group, int devices, bool join, int layer) const;
  // Of the sum of the token table's gradients, for a first stage with tensor groups of `tp` and a
  // last one that has the table too. `join`: in another group.
  costmodel::Seconds least_table(int group, int tp, bool join) const;

 private:
  const costmodel::Scenario* s_;
  std::vector<costmodel::Bytes> passing_;  // by layer
};

}  // namespace planner
