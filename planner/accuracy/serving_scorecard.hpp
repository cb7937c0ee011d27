// How well serving is predicted: errors by metric, source, device and engine, with what is covered.
#pragma once

#include <string>
#include <vector>

#include "costmodel/serving/engine.hpp"
#include "planner/accuracy/serving_evidence.hpp"
#include "planner/report/plan_report.hpp"

namespace planner {

// Runs of low confidence have rows of their own and count in no mean.
Table serving_metric_table(const std::vector<ServingRun>& runs, const costmodel::ServingFit& fit);
// Each source, and whether it counts.
Table serving_source_table(const std::vector<ServingRun>& runs);
// Measurements by device (rows) and engine (columns), with the mean error of output tokens/s.
Table serving_coverage(const std::vector<ServingRun>& runs);
// A row a figure.
Table serving_run_table(const std::vector<ServingRun>& runs);

// `crossed`: each source is predicted by constants fitted to the others.
std::string serving_scorecard(const std::vector<ServingRun>& runs, const costmodel::ServingFit& fit,
                              bool crossed, bool every, const ReportStyle& style);

}  // namespace planner
