#include "costmodel/plan/peak_errors.hpp"

#include <algorithm>
#include <cmath>

#include "costmodel/base/student_t.hpp"

namespace costmodel {

double fits_probability(Bytes peak, Bytes capacity, const PeakErrors& errors) {
  if (capacity.value <= 0) return 0;
  if (peak.value <= 0) return 1;
  return student_t3((std::log(capacity / peak) - errors.middle) / errors.scale);
}

double memory_margin(double confidence, const PeakErrors& errors) {
  const double most = errors.middle + errors.scale * student_t3_quantile(confidence);
  return std::max(0.0, 1 - std::exp(-most));
}

}  // namespace costmodel
