// The uncertainty of a predicted peak of memory: the chance that it fits.
#pragma once

#include <string>

#include "costmodel/base/units.hpp"

namespace costmodel {

// The distribution of log(measured / predicted) of peaks for a scenario: Student's t of 3 degrees
// of freedom (base/student_t).
struct PeakErrors {
  double middle = 0;      // its median
  double scale = 0.1;     // the default applies without a table, and is wider than any table's
  bool measured = false;  // whether the scenario's stack is among those of published peaks
  std::string basis = "chance that it fits: no residuals.yaml was found, so it is a guess";
};

// P(the measured peak is at most `capacity`), given the predicted one. Rises with the capacity;
// 0 where there is none.
double fits_probability(Bytes peak, Bytes capacity, const PeakErrors& errors);

// The share of device memory that a plan must leave free to fit with so much confidence (0 to 1);
// never less than 0: what is predicted beyond the device's memory does not fit.
double memory_margin(double confidence, const PeakErrors& errors);

}  // namespace costmodel
