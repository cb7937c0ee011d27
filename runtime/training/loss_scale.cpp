#include "runtime/training/loss_scale.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace runtime {

void LossScale::note(bool overflowed) {
  if (overflowed) {
    value_ = std::max(rule_.least, value_ / 2);
    in_a_row_ = 0;
    ++skipped_;
    return;
  }
  ++steps_;
  if (++in_a_row_ < rule_.doubled_after) return;
  value_ = std::min(rule_.most, value_ * 2);
  in_a_row_ = 0;
}

std::string scaling_note(double scale, std::int64_t skipped) {
  if (scale == 0) return "";
  return skipped == 0 ? fmt::format("the loss is scaled by {}", scale)
                      : fmt::format(
                            "the loss is scaled by {} at last; steps skipped because gradients "
                            "overflowed fp16: {}",
                            scale, skipped);
}

}  // namespace runtime
