// Every kernel that a device launches for a virtual stage, by operator, and which of host and
// device sets the pace of each part of it.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/cost/kernel_time.hpp"
#include "costmodel/estimate/plan_cost.hpp"
#include "costmodel/plan/parallel_plan.hpp"

namespace costmodel {

class Evaluator;

// Kernels of one name in one direction, summed over the layers of a stage.
struct ListedKernels {
  std::string name;         // the operator's; of what is around one, the framework's (KernelOp)
  std::string_view passes;  // forward, backward, recomputed, iteration
  KernelTime sum;           // of a micro-batch; of an iteration where that is its direction
  KernelBound bound{};
};

// A pass of one layer: the kernels' time on the device with exposed communication, and the host's
// time of their launches. The longer is the pass's.
struct PassPace {
  std::string name;  // layer and direction
  int layers = 0;
  int launches = 0;
  Seconds host, device;
  bool host_bound() const { return host > device; }
};

struct StageKernels {
  std::vector<ListedKernels> kernels;
  std::vector<PassPace> passes;
  // Of an iteration of `micro_batches`, by KernelKind.
  std::array<Seconds, kernel_kind_names.size()> by_kind(std::int64_t micro_batches) const;
};

// Of a stage of a priced plan, with its rank's optimizer, each device computing alone. `own` is the
// stage's plan; `evaluator` is one of its devices, and may be the one that computed the price.
StageKernels stage_kernels(const PlanCost& cost, std::size_t stage, const ParallelPlan& own,
                           Evaluator& evaluator);

}  // namespace costmodel
