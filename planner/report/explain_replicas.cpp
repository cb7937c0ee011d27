#include "planner/report/explain_replicas.hpp"

#include <fmt/format.h>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/estimate/evaluator.hpp"

namespace planner {

using namespace costmodel;

Scenario scenario_of(const costmodel::Pipeline& pipeline, const Scenario& s) {
  Scenario own = s;
  own.cluster = cluster_of(pipeline, s.cluster);
  if (pipeline.on) own.cluster_text = pipeline.group;
  own.training.global_batch = pipeline.sequences();
  return own;
}

std::vector<Explained> explained_groups(const costmodel::PlacedPipelines& pipelines) {
  Explanation all{"groups"};
  if (pipelines.size() == 1) return {};
  std::vector<costmodel::Ending> ends;
  for (const auto& [pipeline, evaluator] : pipelines) {
    ends.push_back(evaluator->end_of(pipeline.plan));
    all.add(
        "B", format_integer(pipeline.sequences()),
        fmt::format("sequences of '{}': d b m = {} x {} x {}; its replicas weigh as much in the "
                    "gradient",
                    pipeline.group, pipeline.plan.dp, pipeline.plan.micro_batch,
                    pipeline.micro_batches));
    all.add("T_g", format_seconds(ends.back().meeting),
            fmt::format("until '{}' has summed its own gradients", pipeline.group));
  }
  all.add("across", format_seconds(pipelines.across()),
          fmt::format("a ring over the groups: {} steps of the gradients / (groups x devices) a "
                      "device, arXiv:1807.11205 section 3.3",
                      2 * (ends.size() - 1)));
  all.add("T", format_seconds(pipelines.together(ends).end.iteration),
          "max T_g + across + longest optimizer + longest gather + host, times stragglers");
  return all.rows;
}

}  // namespace planner
