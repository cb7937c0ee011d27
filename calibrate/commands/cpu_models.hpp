// The small models inside which operators are measured, and those that only test predictions.
#pragma once

#include <vector>

#include "calibrate/measure/probe_model.hpp"

namespace calibrate {

// With `quick` fewer and smaller ones.
std::vector<SmallModel> probed_models(bool quick);
// None of their shapes occurs in probed_models().
std::vector<SmallModel> held_out_models();

}  // namespace calibrate
