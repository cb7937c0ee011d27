// The page of `explain-job` with traces: where the time of an iteration is, measured and predicted
// one above the other on one scale, what each difference would give back, and all figures.
#pragma once

#include <string>
#include <vector>

#include "costmodel/schedule/timeline.hpp"
#include "planner/accuracy/trace_explanation.hpp"
#include "planner/page/timeline_picture.hpp"
#include "planner/traces/attribution.hpp"
#include "planner/traces/trace.hpp"

namespace planner {

// Rows of slices: kernels by their operator, those that follow one another as one.
struct TraceRows {
  costmodel::Timeline slices;
  std::vector<std::string> labels;
  SliceKinds kinds;

  // The shortest recorded iteration of a rank. `trace`: nested, with its iterations.
  void add_measured(const Trace& trace, const Attributor& attributor, const std::string& label);
  // The kernels of the plan's first stage, layer by layer, one after another.
  void add_predicted(const costmodel::Scenario& scenario, const costmodel::ParallelPlan& plan);

 private:
  void add(const std::string& name, TracedPart part, costmodel::Seconds start,
           costmodel::Seconds end);
};

// `json`: as explanation_json() has it.
std::string trace_page(const TraceExplanation& all, const TraceRows& rows,
                       const costmodel::Scenario& scenario, const std::string& json);

}  // namespace planner
