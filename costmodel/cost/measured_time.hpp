// Time of an operator from rates measured on the device, where the device has them.
//
//   linear      over m, n, k of the operator, in FLOP/s of 2·m·n·k for every pass; the weight
//               gradient accumulates into its buffer
//   bias        the additional time of a bias in a product, forward and gradient; over bytes m·n
//   attention   flash attention, scores, context: over the sequence length and the head size, in
//               executed FLOP/s
//   others      over the bytes of the operator's result; for the optimizer, of the parameters
//
// A rate includes the call and everything else that was measured with it, so neither a stack's
// factors nor gradient accumulation are added. Where rates are of the device alone, launches come
// on top of them as for all operators: a pass takes no less than its kernels' launches
// (layer_cost.hpp).
//
// All tables but those of products serve every precision that is stored in as many bytes: those of
// bf16 serve fp16 and, because only the products are narrower there, fp8.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "costmodel/machine/cluster_spec.hpp"
#include "costmodel/operators/op.hpp"

namespace costmodel {

// Whose table the operator has; none: it is never measured.
std::optional<MeasuredOp> measured_op(const Op& op);
// Its name, or "".
std::string_view measured_name(const Op& op);

// Coordinates and amount of one pass: time = amount / rate_at(table, point).
struct MeasuredWork {
  std::vector<double> point;
  double amount = 0;
};
MeasuredWork measured_work(const Op& op, Pass pass, Precision precision);

// Bytes of the result to which a bias is added.
Bytes biased_bytes(const Linear& op, Precision precision);

// Empty when the device has no table for it.
std::optional<Seconds> measured_time(const Op& op, Pass pass, const DeviceSpec& device,
                                     Precision precision);
std::optional<Seconds> measured_optimizer(Bytes parameters, const DeviceSpec& device);

}  // namespace costmodel
