// The front over devices, cost and memory, as plan --front tells it.
#pragma once

#include <string>
#include <vector>

#include "costmodel/scenario/scenario.hpp"
#include "planner/report/plan_report.hpp"
#include "planner/report/table.hpp"
#include "planner/search/device_front.hpp"

namespace planner {

// What a billion tokens take at a point, failures left out.
double device_hours_per_billion_tokens(const FrontPoint& point);

// The points of the front.
Table device_front_table(const DeviceFront& front, const costmodel::Scenario& scenario);

// How many points are left out, and what is not known.
std::vector<std::string> device_front_sentences(const DeviceFront& front,
                                                const costmodel::Scenario& scenario);

std::string device_front_report(const DeviceFront& front, const costmodel::Scenario& scenario,
                                const ReportStyle& style);

}  // namespace planner
