// Measured rates of operators over a grid of shapes.
//
// Between the points the logarithm of the rate is interpolated linearly in the logarithm of each
// coordinate: exact at the points, between the rates of the corners elsewhere. Outside the grid the
// rate is that of the nearest edge, so time grows with the work.
//
// Single shapes that were measured as well (`shardplan calibrate --for`) come before the grid.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "costmodel/base/pass.hpp"
#include "costmodel/base/precision.hpp"

namespace costmodel {

// The operators that are measured (cost/measured_time.hpp says which is which), and the optimizer.
enum class MeasuredOp {
  linear,
  bias,
  flash_attention,
  attention_scores,
  attention_context,
  softmax,
  dropout,
  layernorm,
  rmsnorm,
  head_norm,
  activation,
  gated_activation,
  residual,
  residual_with_bias,
  residual_with_dropout,
  residual_with_both,
  rotary,
  embedding,
  position_embedding,
  cross_entropy,
  optimizer,
};

struct MeasuredShape {
  std::vector<double> sizes;  // the coordinates on the axes, then those of TableKeys::more
  double rate = 0;            // per second
};

// One pass of one operator in one precision. The operator defines the meaning of the axes and of
// the rate (cost/measured_time.hpp).
struct RateTable {
  MeasuredOp op = MeasuredOp::linear;
  Pass pass = Pass::forward;
  Precision precision = Precision::fp32;
  std::vector<std::vector<double>> axes;  // at most three; each ascending and positive
  std::vector<double> rates;              // per second; the first axis varies slowest
  std::vector<MeasuredShape> shapes;      // ascending; where there are some, the grid may be empty
};

// Of the grid. `point` has one positive coordinate per axis.
double rate_at(const RateTable& table, std::span<const double> point);

// That of the very shape, else the grid's; none without a grid. `sizes`: as of MeasuredShape.
std::optional<double> rate_of(const RateTable& table, std::span<const double> sizes);

// Whether the very shape was measured: it is listed, or a point of a grid with axes for all its
// sizes.
bool has_shape(const RateTable& table, std::span<const double> sizes);

// Their names in a device file, in the order of MeasuredOp.
std::span<const std::string_view> measured_names();
std::string_view name_of(MeasuredOp op);

// The axes and the rate's key of an operator's table: {"m", "n", "k"} and flops_per_s for `linear`.
struct TableKeys {
  std::vector<std::string_view> axes;
  std::string_view rate;
  std::vector<std::string_view> more = {};  // sizes of a shape for which the grid has no axis
};
TableKeys keys_of(MeasuredOp op);

}  // namespace costmodel
