// Time of what a framework launches between the products, by its own implementation
// (plan/kernel_set): bytes over the rate that these kernels reach, and each kernel's start.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "costmodel/base/kernel_kind.hpp"
#include "costmodel/machine/cluster_spec.hpp"
#include "costmodel/operators/op.hpp"
#include "costmodel/operators/site.hpp"
#include "costmodel/plan/kernel_set.hpp"

namespace costmodel {

// What decides the time of kernels: arithmetic, the bytes they move, their start on the device, or
// the host, which launches them more slowly than the device runs them.
enum class KernelBound { arithmetic, memory, start, launch };
inline constexpr std::array<std::string_view, 4> kernel_bound_names{"arithmetic", "memory", "start",
                                                                    "launch"};

inline std::string_view name_of(KernelBound bound) {
  return kernel_bound_names[static_cast<std::size_t>(bound)];
}

// What an operator, or what is around it, launches. `copies` and `indexing`: parts of the time that
// count as these kinds.
struct KernelTime {
  Seconds time;
  Bytes moved;
  int kernels = 0;
  Flops executed;
  KernelKind kind{};
  std::string_view name;  // in the framework's set (KernelOp); empty: an operator's own passes
  double copies = 0, indexing = 0;
};

// Their time by the factors of the device's traces; no others than these formulas' take them.
void as_traced(KernelTime& kernels, const DeviceSpec& device);

// Of the device alone.
KernelBound bound_of(const KernelTime& kernels, const DeviceSpec& device);

// Of an operator by its own passes.
KernelKind kind_of(const Op& op, Pass pass);

// So many elements in the width of `element` bytes (see KernelOp); nothing where the file
// leaves it out.
std::optional<KernelTime> kernel_time(const KernelSet& set, KernelOp op, bool forward,
                                      double elements, double source, double element,
                                      const DeviceSpec& device);

// In place of an operator's own passes. Nothing for products, attention, collectives, and what the
// file leaves out.
std::optional<KernelTime> kernels_of(const Op& op, Pass pass, const KernelSet& set, double element,
                                     const DeviceSpec& device);

// The products of a norm's result that an operator at this place stands for and a framework runs
// one by one: queries, keys and values are three. 0: its input is no norm's.
int joined_after_norm(Site site);

// In addition to a product's or attention's kernel: casts of operands, and copies of keys and
// values to each query head. Nothing for other operators.
std::optional<KernelTime> kernels_around(const Op& op, Pass pass, const KernelSet& set,
                                         double element, const DeviceSpec& device, int joined = 0);

}  // namespace costmodel
