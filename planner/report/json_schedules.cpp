#include "planner/report/json_schedules.hpp"

#include <nlohmann/json.hpp>

#include "costmodel/base/json_text.hpp"

namespace planner {

using Json = nlohmann::ordered_json;

namespace {

Json row_of_schedule(const ComparedSchedule& one) {
  if (!one.refused.empty()) return {{"schedule", one.name}, {"refused", one.refused}};
  const costmodel::Estimate& e = one.estimate;
  return {{"schedule", one.name},
          {"vpp", one.plan.vpp},
          {"offered", one.offered},
          {"iteration_s", e.iteration.value},
          {"pipeline_s", e.pipeline.value},
          {"bubble_fraction", e.bubble_fraction},
          {"peak_bytes", e.peak.value},
          {"in_flight_micro_batches", in_flight(e)},
          {"fits", e.fits()}};
}

}  // namespace

std::string schedules_json(const std::vector<ComparedSchedule>& schedules) {
  Json rows = Json::array();
  for (const ComparedSchedule& one : schedules) rows.push_back(row_of_schedule(one));
  return costmodel::json_text(Json{{"schedules", rows}});
}

}  // namespace planner
