// Communication of an iteration that other work hides, which the breakdown does not count: what the
// collectives of the critical rank take alone, one after the other, less what they add to the
// iteration. Nothing of the prediction follows from it; it is worked out for reports, by pricing
// the plan again as if nothing ran during communication.
#pragma once

#include "costmodel/base/units.hpp"
#include "costmodel/estimate/estimate.hpp"
#include "costmodel/estimate/plan_cost.hpp"

namespace costmodel {

// By the parts of the breakdown, but for offload, which it has among others; each at least 0. What
// is exposed and this add up to the collectives alone, unless more is exposed than they take: the
// last bucket of a reduction, transfers of other ranks while the pipeline fills.
struct HiddenTime {
  Seconds tp_comm, cp_comm, ep_comm;
  Seconds pp_comm;  // of what the rank sends: beside computation, or while it waits in the bubble
  Seconds dp_comm;
  Seconds offload;  // activations to and from host memory
  Seconds total() const { return tp_comm + cp_comm + ep_comm + pp_comm + dp_comm + offload; }
};

// Of an estimate that `whole` made.
HiddenTime hidden_time(const Estimate& estimate, Evaluator& whole);

// What the sends of a pipeline rank take in an iteration, one after the other.
Seconds sends_alone(const PlanCost& cost, const ParallelPlan& plan, std::size_t rank);

}  // namespace costmodel
