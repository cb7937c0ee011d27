// How far a predicted iteration time may be from the measured one.
#pragma once

#include <string>

namespace costmodel {

// What is known of the iteration times predicted for a scenario.
struct ErrorBand {
  double low = 0.65;  // measured / predicted, 5th and 95th percentile; 1 lies between them.
  double high = 2;    // These two hold where no table is found: wider than any table's widest.
  // Of log(measured / predicted) between two plans of one scenario; scale of a Student t of 3.
  double pair_spread = 0.2;
  std::string basis = "interval: no residuals.yaml was found, so it is the widest";
};

}  // namespace costmodel
