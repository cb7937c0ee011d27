// Which valid plans the runtime can execute.
#pragma once

#include <vector>

#include "costmodel/model/model_spec.hpp"
#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/plan/training_spec.hpp"

namespace runtime {

// The reasons why the runtime cannot execute a valid plan, each with a remedy; empty when it can.
std::vector<costmodel::Violation> unsupported(const costmodel::ModelSpec& model,
                                              const costmodel::TrainingSpec& training,
                                              const costmodel::ParallelPlan& plan);

}  // namespace runtime
