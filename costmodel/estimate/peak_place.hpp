// What holds the peak of a plan's memory: for reports, worked out again from the op lists of the
// fullest rank. Nothing of the prediction follows from it.
#pragma once

#include <string>

#include "costmodel/base/units.hpp"
#include "costmodel/estimate/plan_cost.hpp"
#include "costmodel/estimate/plan_inputs.hpp"

namespace costmodel {

struct PeakPlace {
  int stage = 0;       // the pipeline rank that is fullest relative to its devices
  std::string layer;   // kind of the layer at work; empty where stages have sizes of their own
  std::string op;      // its operator, at which its working tensors take most
  std::string pass;    // forward, recomputed, backward; step, where layer is empty
  Bytes working;       // these working tensors, beyond what is kept
  std::string tensor;  // of the kept activations the one that takes most; named by the operator
                       // that makes it
  Bytes kept;          // by it, over all layers and micro-batches in flight
  bool known() const { return !pass.empty(); }
};

// Of a plan whose stages have one size.
PeakPlace peak_place(const PlanInputs& in, const PlanCost& cost);

}  // namespace costmodel
