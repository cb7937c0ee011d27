#include "calibrate/pace.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "calibrate/measurement.hpp"
#include "runtime/cpu/gemm.hpp"

namespace calibrate {

namespace {

constexpr std::int64_t side = 128;
constexpr std::size_t batch = 1000;  // products whose fastest fiftieth says what the best pace is:
constexpr int at_first = 10;         // clocks that jump between cores make single ones too fast

class Yardstick {
 public:
  Yardstick() {
    for (std::size_t i = 0; i < at_first * batch; ++i) note(once());
  }

  // The best of three, so that an interruption of the yardstick itself is none of the sample's.
  double factor() {
    once();  // its operands come back to the caches
    const double time = std::min({once(), once(), once()});
    note(time);
    return std::min(1.0, best_ / time);
  }

 private:
  double once() {
    const costmodel::Seconds begin = clock_();
    runtime::cpu::gemm<float>({.m = side, .n = side, .k = side}, a_, b_, c_);
    return (clock_() - begin).value;
  }

  void note(double time) {
    seen_.push_back(time);
    if (seen_.size() < batch) return;
    const auto fast = seen_.begin() + batch / 50;
    std::nth_element(seen_.begin(), fast, seen_.end());
    best_ = std::min(best_, *fast);
    seen_.clear();
  }

  Clock clock_ = thread_clock();
  std::vector<float> a_ = std::vector<float>(side * side, 1), b_ = a_, c_ = a_;
  std::vector<double> seen_;
  double best_ = 1e9;
};

}  // namespace

Pace yardstick() {
  thread_local const auto stick = std::make_shared<Yardstick>();
  return [mine = stick] { return mine->factor(); };
}

}  // namespace calibrate
