// Fits a device's constants to its copies, matrix products, attention and other kernels, with the
// formulas of costmodel/cost/device_time.
#pragma once

#include <vector>

#include "calibrate/fit/fit.hpp"
#include "costmodel/machine/cluster_spec.hpp"

namespace calibrate {

// One group of constants per kind of measurement (products: one per precision, most points first).
// Groups without points are omitted; products in a precision without a peak rate are added to
// `unused`. FlashAttention 2 gets constants of its own when the device has them (`separate_flash2`)
// or the measurements include a better kernel. Products with the casts of their operands, products
// in groups and memory-bound kernels have groups that are only reported (Knob::written).
// `group_start`: time that every group of a product adds (StackExperts::start_fused).
std::vector<FittedGroup> fit_device(const costmodel::DeviceSpec& base,
                                    const std::vector<Measurement>& measurements,
                                    bool separate_flash2, std::vector<Unused>& unused,
                                    costmodel::Seconds group_start = {});

}  // namespace calibrate
