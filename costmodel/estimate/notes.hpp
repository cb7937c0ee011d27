// The assumptions behind an estimate, and what the framework changes by itself, as sentences.
#pragma once

#include <string>
#include <vector>

#include "costmodel/estimate/plan_cost.hpp"
#include "costmodel/estimate/pricing.hpp"
#include "costmodel/plan/host_offload.hpp"

namespace costmodel {

std::vector<std::string> notes_of(const Workload& on, const Offload& offload,
                                  const HostOffload& states);

}  // namespace costmodel
