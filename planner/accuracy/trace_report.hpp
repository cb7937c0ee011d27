// Traces next to what is predicted for their runs, for people.
#pragma once

#include <string>
#include <vector>

#include "planner/accuracy/trace_fit.hpp"
#include "planner/report/plan_report.hpp"
#include "planner/report/table.hpp"

namespace planner {

// Seconds of an iteration by kind of kernel: measured, predicted without and with the trace.
Table kind_table(const FittedTrace& trace);
// The same by operator and direction.
Table part_table(const FittedTrace& trace);

// One trace: the table by kind, what could be attributed, and whether host or device set the pace.
std::string trace_text(const FittedTrace& trace, const ReportStyle& style = {});

// All of a calibration: `own` is what it writes.
std::string trace_report(const std::vector<FittedTrace>& traces, const costmodel::OwnRuns& own,
                         costmodel::Seconds prior_launch, const ReportStyle& style = {});

}  // namespace planner
