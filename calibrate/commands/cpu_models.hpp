// The models that operators are measured in, and those that predictions are held against.
#pragma once

#include <vector>

#include "calibrate/measure/probe_model.hpp"

namespace calibrate {

// In the quick form fewer and smaller ones.
std::vector<SmallModel> probed_models(bool quick);
// No shape of them is in the others.
std::vector<SmallModel> held_out_models();

}  // namespace calibrate
