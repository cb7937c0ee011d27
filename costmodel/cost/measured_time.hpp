// The time of an operator by the rates measured on the device, where it has them.
//
//   linear             over m, n, k of the operator, in FLOP/s of 2·m·n·k, whatever the pass; the
//                      weight gradient adds to what its buffer holds
//   bias               what a bias adds to a product: forward, and its gradient; bytes m·n
//   attention          flash attention, scores, context: over the sequence and the head's size, in
//                      FLOP/s executed
//   all others         over the bytes of the operator's result; the optimizer's, of the parameters
//
// A rate holds the call and everything else that its time was measured with, so neither a stack's
// factors nor the accumulation of gradients come on top.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "costmodel/machine/cluster_spec.hpp"
#include "costmodel/operators/op.hpp"

namespace costmodel {

// The name of the operator's table; "" for one that is never measured.
std::string_view measured_name(const Op& op);

// Coordinates and amount of one pass: time = amount / rate_at(table, point).
struct MeasuredWork {
  std::vector<double> point;
  double amount = 0;
};
MeasuredWork measured_work(const Op& op, Pass pass, Precision precision);

// Bytes of the result that a bias is added to.
Bytes biased_bytes(const Linear& op, Precision precision);

// Nothing where the device has no table for it.
std::optional<Seconds> measured_time(const Op& op, Pass pass, const DeviceSpec& device,
                                     Precision precision);
std::optional<Seconds> measured_optimizer(Bytes parameters, const DeviceSpec& device);

}  // namespace costmodel
