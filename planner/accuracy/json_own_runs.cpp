#include "planner/accuracy/json_own_runs.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "costmodel/base/json_text.hpp"

namespace planner {

using Json = nlohmann::ordered_json;

std::string own_runs_json(const OwnRunsFit& own, int sources) {
  Json runs = Json::array();
  for (std::size_t i = 0; i < own.runs.size(); ++i) {
    const OwnRun& run = own.runs[i];
    const double predicted = run.predicted.value;
    runs.push_back({{"log", run.log},
                    {"iterations", run.iterations},
                    {"measured_s", run.measured.value},
                    {"predicted_s", predicted},
                    {"by_others_s", i < own.fit.by_others.size()
                                        ? Json(predicted * std::exp(own.fit.by_others[i]))
                                        : Json()}});
  }
  const bool several = own.runs.size() > 1;
  return costmodel::json_text(
      {{"stack", own.measured.stack},
       {"runs", runs},
       {"error_pct", several ? Json(100 * own.fit.before) : Json()},
       {"by_others_error_pct", several ? Json(100 * own.fit.after) : Json()},
       {"refused", own.fit.refused},
       {"time_factor", own.measured.time_factor},
       {"low", own.measured.low},
       {"high", own.measured.high},
       {"sources", sources}});
}

}  // namespace planner
