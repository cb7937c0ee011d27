// The uncertainty of a predicted iteration time.
#pragma once

#include <string>
#include <vector>

#include "costmodel/plan/plan_features.hpp"

namespace costmodel {

// The distribution of measured / predicted iteration times for a scenario.
struct ErrorBand {
  double low = 0.65;  // 5th percentile of measured / predicted; the interval contains 1.
  double high = 2;    // 95th percentile. Both defaults apply without a table and are wider than any
                      // table's widest.
  // Spread of log(measured / predicted) between two plans of one scenario: the scale of a Student t
  // with 3 degrees of freedom.
  double pair_spread = 0.2;
  // What of the scenario no published run has: "by peft", "on rtx-4090".
  std::vector<std::string> unknown;
  PlanFeatures unmeasured = 0;  // of plans: those that no published run of the kind has
  std::string basis = "interval: no residuals.yaml was found, so it is the widest";
};

}  // namespace costmodel
