// Durations of the actions of a pipeline.
#pragma once

#include <vector>

#include "costmodel/base/units.hpp"

namespace costmodel {

// Times of one micro-batch by virtual stage, and of the transfer between neighbouring stages on
// different ranks.
struct PipelineTimes {
  std::vector<Seconds> forward;
  std::vector<Seconds> backward;  // input gradient only if the schedule splits the backward
  Seconds transfer;
  bool blocking = false;  // the sender waits for the transfer to end before its next action
  std::vector<Seconds> weight_gradient;  // empty when the backward is not split
  // By the virtual stage of the forward: a forward and a whole backward of the stage that the same
  // rank has on its other way or chunk, run together. Empty: as long as both.
  std::vector<Seconds> together;
  // For heterogeneous stages: transfer times by boundary, from stage k to k + 1 and back. Empty:
  // each is `transfer`. Needs one virtual stage per rank.
  std::vector<Seconds> forward_transfer, backward_transfer;
};

}  // namespace costmodel
