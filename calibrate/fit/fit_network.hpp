// Fits a network's constants to collectives, with the formulas of costmodel/cost/collective: the
// efficiency of every tier and, when the data determine them, its latency per hop and its fixed
// time.
#pragma once

#include <vector>

#include "calibrate/fit/fit.hpp"
#include "costmodel/machine/cluster_spec.hpp"

namespace calibrate {

// One group per tier that is the outermost tier of some collective, from the innermost out; inner
// tiers are fitted before outer ones.
std::vector<FittedGroup> fit_network(const costmodel::ClusterSpec& base,
                                     const std::vector<Measurement>& measurements,
                                     std::vector<Unused>& unused);

}  // namespace calibrate
