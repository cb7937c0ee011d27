#include "planner/report/explain_replicas.hpp"

#include <fmt/format.h>

#include <utility>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/estimate/replica_cost.hpp"

namespace planner {

using costmodel::format_integer;
using costmodel::format_seconds;
using costmodel::ReplicaEnd;
using costmodel::ReplicaPart;
using costmodel::Scenario;

Scenario scenario_of(const ReplicaPart& part, std::size_t group, const Scenario& s) {
  Scenario own = s;
  own.cluster = s.cluster.groups[group];
  own.cluster_text = part.group;
  own.training.global_batch = part.sequences();
  return own;
}

std::vector<Explained> explained_groups(const costmodel::ParallelPlan& plan, const Scenario& s) {
  costmodel::ReplicaEvaluator groups(s.model, s.cluster, s.training);
  std::vector<Explained> rows;
  const auto add = [&rows](std::string symbol, std::string value, std::string from) {
    rows.push_back({"groups", std::move(symbol), std::move(value), std::move(from)});
  };
  std::vector<ReplicaEnd> ends;
  for (const ReplicaPart& part : replica_parts(plan, s.training.global_batch)) {
    ends.push_back(groups.end(ends.size(), {part.plan, part.micro_batches}));
    add("B", format_integer(part.sequences()),
        fmt::format("sequences of '{}': d b m = {} x {} x {}; its replicas weigh as much in the "
                    "gradient",
                    part.group, part.plan.dp, part.plan.micro_batch, part.micro_batches));
    add("T_g", format_seconds(ends.back().meeting),
        fmt::format("until '{}' has summed its own gradients", part.group));
  }
  add("across", format_seconds(groups.across()),
      fmt::format("a ring over the groups: {} steps of the gradients / (groups x devices) a "
                  "device, arXiv:1807.11205 section 3.3",
                  2 * (ends.size() - 1)));
  add("T", format_seconds(groups.iteration(ends)),
      "max T_g + across + longest optimizer + longest gather + host, times stragglers");
  return rows;
}

}  // namespace planner
