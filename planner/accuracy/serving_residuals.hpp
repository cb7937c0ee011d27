// Intervals of predictions of serving, from what the errors of sources that were left out say.
//
// log(measured / predicted) of a figure is taken as a source's own part, common to its figures, and
// a figure's part within it. Few sources are measured, so the spread between them is uncertain
// itself: a new source lies in m ± t sqrt(B (1 + 1/n) + W), with m the mean of n sources' means, B
// their variance, W the mean variance within a source, and t the 95th percentile of Student's
// distribution (Student 1908, "The probable error of a mean"; of a new observation: Gelman et al.,
// Bayesian Data Analysis, 3rd ed., section 3.2). B borrows one degree of freedom from the other
// metrics, whose mean of B counts as one more source, so it is known for one source as well.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "costmodel/serving/engine.hpp"
#include "planner/accuracy/serving_evidence.hpp"

namespace planner {

// 95th percentile of Student's t.
double student_95(std::size_t degrees);

// The 90 % intervals of measured / predicted of all metrics, from the sources but `without` (""
// leaves none out): Student's t of the spread between sources and within them, and never less than
// from the 5th to the 95th percentile of what was seen. A metric without figures keeps `otherwise`.
std::array<std::array<double, 2>, 4> serving_intervals(
    const std::vector<ServingRun>& runs, const std::string& without,
    const std::array<std::array<double, 2>, 4>& otherwise);

// Writes them, of all sources, into the fit, with the sentence that says where they come from.
void set_intervals(const std::vector<ServingRun>& runs, costmodel::ServingFit& fit);

// The part of a metric's figures inside intervals that rest on the other sources alone.
double covered(const std::vector<ServingRun>& runs, ServingMetric metric);

}  // namespace planner
