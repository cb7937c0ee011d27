// Time of what a framework launches between the products, by its own implementation
// (plan/kernel_set): bytes over the rate that these kernels reach, and each kernel's start.
#pragma once

#include <optional>

#include "costmodel/machine/cluster_spec.hpp"
#include "costmodel/operators/op.hpp"
#include "costmodel/plan/kernel_set.hpp"

namespace costmodel {

struct KernelTime {
  Seconds time;
  Bytes moved;
  int kernels = 0;
};

// So many elements in the width of `element` bytes (see KernelOp); nothing where the file
// leaves it out.
std::optional<KernelTime> kernel_time(const KernelSet& set, KernelOp op, bool forward,
                                      double elements, double source, double element,
                                      const DeviceSpec& device);

// In place of an operator's own passes. Nothing for products, attention, collectives, and what the
// file leaves out.
std::optional<KernelTime> kernels_of(const Op& op, Pass pass, const KernelSet& set, double element,
                                     const DeviceSpec& device);

// In addition to a product's or attention's kernel: casts of operands, and copies of keys and
// values to each query head. Nothing for other operators.
std::optional<KernelTime> kernels_around(const Op& op, Pass pass, const KernelSet& set,
                                         double element, const DeviceSpec& device);

}  // namespace costmodel
