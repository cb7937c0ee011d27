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
  // Empty when exactly one of the two is zero.
  std::optional<double> error_pct;
  // For times and the bubble, when RunResult::at_pace is set.
  std::optional<double> at_pace, at_pace_error_pct;
};

// The rows: iteration time, each stage's forward and backward, bubble and, unless emulated, each
// stage's memory by kind and the bytes per collective.
std::vector<Compared> compare(const RunResult& result);

// The traffic of the pipeline rank whose devices send most, as in costmodel::Estimate::traffic.
costmodel::Traffic most_traffic(const RunSummary& measured);

}  // namespace runtime
