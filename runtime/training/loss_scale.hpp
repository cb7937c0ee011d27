// Dynamic loss scaling for fp16, whose smallest number small gradients would underflow
// (Micikevicius et al. 2018, arXiv:1710.03740, section 3.2). A step whose gradients overflow is
// skipped. The rule is torch.amp.GradScaler's: start at 2^16, halve when a step is skipped, double
// after 2000 consecutive steps that were not.
#pragma once

#include <cstdint>
#include <string>

namespace runtime {

class LossScale {
 public:
  struct Rule {
    double first = 65536, least = 1, most = 16777216;
    std::int64_t doubled_after = 2000;
  };
  LossScale() : LossScale(Rule{}) {}
  explicit LossScale(const Rule& rule) : rule_(rule), value_(rule.first) {}

  double value() const { return value_; }
  std::int64_t steps() const { return steps_; }  // optimizer steps taken
  std::int64_t skipped() const { return skipped_; }
  // Call at the end of an iteration; `overflowed`: gradients overflowed on any rank.
  void note(bool overflowed);

 private:
  Rule rule_;
  double value_;
  std::int64_t steps_ = 0, skipped_ = 0, in_a_row_ = 0;
};

// A sentence for the report; "" when nothing was scaled (scale 0).
std::string scaling_note(double scale, std::int64_t skipped);

}  // namespace runtime
