// A network's constants from collectives, by the formulas of costmodel/collective: of every tier
// the efficiency, and where the data show them the latency of a hop and the fixed time.
#pragma once

#include <vector>

#include "calibrate/fit/fit.hpp"
#include "costmodel/machine/cluster_spec.hpp"

namespace calibrate {

// One group a tier that is the outermost of some collective, from the innermost out; an outer tier
// is fitted with the inner ones already fitted.
std::vector<FittedGroup> fit_network(const costmodel::ClusterSpec& base,
                                     const std::vector<Measurement>& measurements,
                                     std::vector<Unused>& unused);

}  // namespace calibrate
