// All schedules for the sizes of one plan: bubble, memory and time of each, and their pipelines
// drawn on one scale of time.
#pragma once

#include <string>
#include <vector>

#include "costmodel/base/text_width.hpp"

#include "costmodel/estimate/estimate.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "costmodel/schedule/timeline.hpp"
#include "planner/report/plan_report.hpp"

namespace planner {

struct ComparedSchedule {
  std::string name;
  costmodel::ParallelPlan plan;
  std::string refused;  // why there is no such plan; the rest is then empty
  bool offered = true;  // by the stack
  costmodel::Estimate estimate;
  costmodel::Timeline timeline;
};

// A row for every schedule that is generated, in the order of their names. Only the schedule, the
// chunks of a rank and the layers' layout differ from `plan`; schedules that the stack does not
// offer are computed as if it did.
std::vector<ComparedSchedule> compared_schedules(const costmodel::Scenario& scenario,
                                                 const costmodel::ParallelPlan& plan);

// What the times of the table and of the charts are: one definition for text and page.
std::string schedule_times_note();

// The charts are as wide as lines may be, and at most 100 columns.
std::string schedule_comparison(const std::vector<ComparedSchedule>& schedules,
                                std::size_t width = costmodel::unlimited_width);
// The columns of a chart in lines of at most `width`.
int chart_columns(std::size_t width);
// What a reader must know of a chart whose columns stand for several actions; else "".
std::string chart_note(const costmodel::Timeline& timeline, int columns);

// The micro-batches in flight on the fullest rank.
double in_flight(const costmodel::Estimate& estimate);

}  // namespace planner
