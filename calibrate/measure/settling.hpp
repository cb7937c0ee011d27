// Whether something that is repeated has warmed up: its last times agree.
#pragma once

#include <functional>
#include <span>

#include "calibrate/measure/measurement.hpp"

namespace calibrate {

// Whether there are `last` times and the largest of the last ones exceeds the least by at most
// `apart`, as a fraction.
bool settled(std::span<const double> times, std::size_t last, double apart);

struct Settling {
  double apart = 0.02;
  std::size_t last = 8;
  costmodel::Seconds least{1}, most{4};  // goes on for that long at least, and at most
};
struct Settled {
  costmodel::Seconds taken;
  bool settled = false;
};
// Repeats `run`, which returns its time, until its last times agree.
Settled settle(const std::function<costmodel::Seconds()>& run, const Settling& rule,
               const Clock& clock);

}  // namespace calibrate
