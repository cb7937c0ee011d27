// Time of an operator from rates measured on the device, where the device has them.
//
//   linear      over m, n, k of the operator, in FLOP/s of 2·m·n·k for every pass; the weight
//               gradient accumulates into its buffer
//   bias        the additional time of a bias in a product, forward and gradient; over bytes m·n
//   attention   flash attention, scores, context: over the sequence length and the head size, in
//               executed FLOP/s
//   others      over the bytes of the operator's result; for the optimizer, of the parameters
//
// A shape that was measured itself, with heads of all sequences or rows of the result as well, has
// its own rate before that of the grid.
//
// A rate includes the call and everything else that was measured with it, so neither a stack's
// factors nor gradient accumulation are added. Where rates are of the device alone, launches come
// on top of them as for all operators: a pass takes no less than its kernels' launches
// (layer_cost.hpp).
//
// All tables but those of products serve every precision that is stored in as many bytes: those of
// bf16 serve fp16 and, because only the products are narrower there, fp8.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

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
  std::array<double, 2> more{};       // sizes by TableKeys::more; 0: no such
  std::vector<double> sizes() const;  // the point and these: time = amount / rate_of(table, sizes)
};
MeasuredWork measured_work(const Op& op, Pass pass, Precision precision);

// By which the device prices that; null: by a formula. Another precision of the same width
// serves all operators but products.
const RateTable* table_of(MeasuredOp op, Pass pass, const DeviceSpec& device, Precision precision);

// Empty when the device has no table for it, or one of single shapes without this.
std::optional<Seconds> measured_time(const Op& op, Pass pass, const DeviceSpec& device,
                                     Precision precision);
// What is in that for the bias of a product, unless the following residual adds it. `precision`: of
// the product.
Seconds measured_bias(const Op& op, Pass pass, const DeviceSpec& device, Precision precision);
std::optional<Seconds> measured_optimizer(Bytes parameters, const DeviceSpec& device);

}  // namespace costmodel
