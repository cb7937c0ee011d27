// Prediction beside measurement, quantity by quantity.
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
  // 100 · (predicted - measured) / measured; of fractions, the difference in points. Nothing where
  // only one of the two is zero.
  std::optional<double> error_pct;
  // Of times and the bubble, where RunResult::at_pace is there.
  std::optional<double> at_pace, at_pace_error_pct;
};

// Iteration, each stage's forward and backward, bubble, and, where it computed, memory by kind of
// each stage and bytes by collective.
std::vector<Compared> compare(const RunResult& result);

// Of the pipeline rank whose devices send most, as costmodel::Estimate::traffic.
costmodel::Traffic most_traffic(const RunSummary& measured);

}  // namespace runtime
