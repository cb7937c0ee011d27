// Fits one formula's constants to measured times, and reports the errors before and after and which
// constants the data determine.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/fit/microbenchmark.hpp"
#include "costmodel/base/units.hpp"

namespace calibrate {

// A constant of the formula: its present value and its range. `always` constants are always fitted;
// others only if they lower the Bayesian information criterion (Schwarz 1978) for errors with a
// Laplace distribution: 2n · ln(mean |error|) + ln n per constant.
struct Knob {
  std::string name;
  double start, least, most;
  bool always = false;
  std::optional<std::size_t> follows =
      {};               // keeps its ratio to that knob: the points show one only
  bool written = true;  // false: reported, and left as it is in the profile
};

struct FitTask {
  std::string what;  // "bf16 products"
  std::vector<Knob> knobs;
  std::vector<Measurement> points;
  // The predicted time of a point for given values of the knobs, in seconds.
  std::function<costmodel::Seconds(const std::vector<double>&, const Measurement&)> model;
};

struct ErrorSummary {  // of |predicted / measured - 1|, in per cent
  double median = 0, p90 = 0;
  double bias = 0;  // median of predicted / measured - 1, per cent
};

struct FittedConstant {
  std::string name;
  double before, after;
  bool fitted;            // false: unchanged, because the data do not determine it
  bool at_bound = false;  // the best value lies outside the range
  bool written = true;
};

struct FittedGroup {
  std::string what;
  std::vector<FittedConstant> constants;
  std::size_t points = 0;
  ErrorSummary before, after;
  std::vector<std::string> sources;  // titles, each once, sorted
  std::string measured;              // dates from first to last, or "not stated"
  std::vector<double> values() const;
  bool any_fitted() const;
};

// `shipped`: the task with all constants as they were before any was fitted; its errors are
// `before`.
FittedGroup fit(const FitTask& task, const FitTask& shipped);
inline FittedGroup fit(const FitTask& task) { return fit(task, task); }

}  // namespace calibrate
