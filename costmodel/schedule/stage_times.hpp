// What the actions of a pipeline take.
#pragma once

#include <vector>

#include "costmodel/base/units.hpp"

namespace costmodel {

// Times of one micro-batch by virtual stage, and of the transfer between neighbouring stages on
// different ranks.
struct PipelineTimes {
  std::vector<Seconds> forward;
  std::vector<Seconds> backward;  // of the input gradient alone where the schedule splits it
  Seconds transfer;
  bool blocking = false;  // the sending rank waits for its transfer to end before its next action
  std::vector<Seconds> weight_gradient;  // empty where backward is whole
  // Where stages differ: of the transfer from stage k to k + 1, and back; empty: all are
  // `transfer`. One virtual stage a rank.
  std::vector<Seconds> forward_transfer, backward_transfer;
};

}  // namespace costmodel
