// Student's t distribution of 3 degrees of freedom, by which errors of predictions are spread:
// heavier tails than the normal distribution's, as the errors of published runs have. (Student
// 1908, "The probable error of a mean".)
#pragma once

namespace costmodel {

// The probability of a value of at most `t`, of a distribution around 0 of scale 1.
double student_t3(double t);

// The value that is not exceeded with `probability`, of 0 to 1; infinite at both ends.
double student_t3_quantile(double probability);

// The logarithm of the density at `t`, of a distribution around 0 of scale 1.
double student_t3_log_density(double t);

}  // namespace costmodel
