#include "planner/accuracy/json_serving_runs.hpp"

#include <nlohmann/json.hpp>

#include "costmodel/base/json_text.hpp"

namespace planner {

using Json = nlohmann::ordered_json;

std::string serving_runs_json(const std::vector<ServingRun>& runs) {
  Json all = Json::array();
  for (const ServingRun& run : runs) {
    Json figures = Json::array();
    for (const ServingFigure& f : run.figures) {
      figures.push_back({{"metric", serving_metric_names[static_cast<std::size_t>(f.metric)]},
                         {"measured", f.measured},
                         {"predicted", f.predicted > 0 ? Json(f.predicted) : Json()}});
    }
    all.push_back({{"source", run.source},
                   {"id", run.id},
                   {"device", run.device()},
                   {"engine", run.scenario.serving.engine.name},
                   {"confidence", run.confidence},
                   {"fault", run.fault},
                   {"figures", figures}});
  }
  return costmodel::json_text(all);
}

}  // namespace planner
