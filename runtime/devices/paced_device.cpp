#include "runtime/devices/paced_device.hpp"

#include <algorithm>
#include <cmath>

namespace runtime {

using namespace costmodel;

namespace {

constexpr Seconds apart{0.003};
constexpr std::int64_t to_settle = 50;  // at least so many calls

}  // namespace

void PacedDevice::take() {
  const Seconds begin = wall_time();
  sticks_ += yardstick_.now();
  ++taken_;
  ++all_;
  measuring_ += wall_time() - begin;
}

double PacedDevice::slowdown(Seconds reference) {
  if (own_ == Seconds(0)) return 1;
  if (taken_ == 0) take();
  const double slow = wall_ / own_ * (sticks_ / taken_ / reference);
  if (every_ == 0 && calls_ >= to_settle) {
    const double calls = static_cast<double>(calls_) * (apart / own_);
    every_ = std::max<std::int64_t>(1, std::llround(calls));
  }
  wall_ = own_ = sticks_ = {};
  taken_ = 0;
  calls_ = 0;
  return slow;
}

void PacedDevice::around(Work work, const OpCall& call) {
  if (++calls_ % (every_ == 0 ? to_settle / 10 : every_) == 0) take();
  const Seconds wall = wall_time(), own = thread_time();
  through(work, call);
  own_ += thread_time() - own;
  wall_ += wall_time() - wall;
}

}  // namespace runtime
