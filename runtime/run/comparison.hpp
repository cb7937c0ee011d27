// Compares predictions with measurements, quantity by quantity.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/run/run_command.hpp"

namespace runtime {

enum class Unit { seconds, bytes, fraction };

struct Compared {
  std::string key;    // "stages.0.forward_s", as in the JSON of a plan
  std::string title;  // "stage 0 forward"
  Unit unit = Unit::seconds;
  double predicted = 0, measured = 0;
  // 100 · (predicted - measured) / measured; for fractions, the difference in percentage points.
  // Empty when exactly one of the two is zero, or one is not finite.
  std::optional<double> error_pct;
  // For times and the bubble, when RunResult::at_pace is set.
  std::optional<double> at_pace, at_pace_error_pct;
};

// The rows: iteration time, each stage's forward and backward, bubble and, unless emulated, each
// stage's memory by kind and the bytes per collective.
std::vector<Compared> compare(const RunResult& result);

// Why there is no prediction of the iteration time, "" when there is one.
std::string not_predicted(const RunResult& result);

// How the prediction of the iteration time misses `limit_pct`, in either direction; "" when it does
// not. No prediction misses every limit.
std::string limit_missed(const RunResult& result, double limit_pct);

// Throughput at the measured iteration time, the FLOPs and the peak being those of the prediction:
// the prediction with the iteration time, rates and utilization replaced.
costmodel::Estimate at_measured_time(const RunResult& result);

// The traffic of the pipeline rank whose devices send most, as in costmodel::Estimate::traffic.
costmodel::Traffic most_traffic(const RunSummary& measured);

}  // namespace runtime
