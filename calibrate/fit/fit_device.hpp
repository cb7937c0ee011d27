// A device's constants from its copies, matrix products and attention kernels, by the formulas of
// costmodel/cost/device_time.
#pragma once

#include <vector>

#include "calibrate/fit/fit.hpp"
#include "costmodel/machine/cluster_spec.hpp"

namespace calibrate {

// One group of constants a kind of measurement (products: one a precision, most points first).
// Groups without points are left out; products in a precision the device has no rate for are
// counted in `unused`. FlashAttention 2 has constants of its own where the device has, or the
// measurements show, a better kernel (`separate_flash2`: the device has).
std::vector<FittedGroup> fit_device(const costmodel::DeviceSpec& base,
                                    const std::vector<Measurement>& measurements,
                                    bool separate_flash2, std::vector<Unused>& unused);

}  // namespace calibrate
