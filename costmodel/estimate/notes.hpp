// The assumptions behind an estimate, and what the framework changes by itself, as sentences.
#pragma once

#include <string>
#include <vector>

#include "costmodel/estimate/plan_cost.hpp"
#include "costmodel/estimate/pricing.hpp"

namespace costmodel {

std::vector<std::string> notes_of(const Workload& on, const ParallelPlan& plan,
                                  const Offload& offload);

}  // namespace costmodel
