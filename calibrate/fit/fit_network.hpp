// Fits a network's constants to collectives and exchanges of routed tokens, with the formulas of
// costmodel/cost/collective: the efficiency of every tier and, when the data determine them, its
// latency per hop and its fixed time.
#pragma once

#include <vector>

#include "calibrate/fit/fit.hpp"
#include "costmodel/machine/cluster_spec.hpp"

namespace calibrate {

// One group per tier that is the outermost tier of some collective, from the innermost out; inner
// tiers are fitted before outer ones. Then one per outermost tier of the exchanges of routed
// tokens: the efficiency of their kernels relative to the tiers as they are in `base`, which
// belongs to a framework (StackExperts::exchange_efficiency) and is only reported.
std::vector<FittedGroup> fit_network(const costmodel::ClusterSpec& base,
                                     const std::vector<Measurement>& measurements,
                                     std::vector<Unused>& unused, double exchange_efficiency = 1);

}  // namespace calibrate
