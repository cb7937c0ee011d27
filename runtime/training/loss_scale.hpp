// The factor of the loss, and so of all gradients, in training whose gradients would be lost below
// fp16's smallest number (Micikevicius et al. 2018, arXiv:1710.03740, section 3.2). Weight
// gradients that overflow show that it is too large: that step is skipped. How it changes is
// torch.amp.GradScaler's rule: from 2^16, halved where a step is skipped, doubled after 2000 in a
// row that were not.
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
  std::int64_t steps() const { return steps_; }  // that were taken
  std::int64_t skipped() const { return skipped_; }
  // The end of an iteration: whether gradients overflowed on any rank.
  void note(bool overflowed);

 private:
  Rule rule_;
  double value_;
  std::int64_t steps_ = 0, skipped_ = 0, in_a_row_ = 0;
};

// "" where nothing was scaled (0).
std::string scaling_note(double scale, std::int64_t skipped);

}  // namespace runtime
