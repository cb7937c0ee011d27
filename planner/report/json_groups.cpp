#include "planner/report/json_groups.hpp"

#include <nlohmann/json.hpp>

namespace planner {

std::string groups_json(const GroupsOf& of) {
  using nlohmann::ordered_json;
  const costmodel::ParallelPlan& p = of.plan;
  const bool megatron = of.layout == costmodel::RankLayout::megatron;
  ordered_json all{{"layout", costmodel::rank_layout_names[static_cast<std::size_t>(of.layout)]}};
  all["order"] = megatron ? p.rank_order : "tp-cp-pp-dp";
  all["ranks"] = p.devices();
  all["sizes"] = {{"tp", p.tp}, {"pp", p.pp}, {"dp", p.dp}, {"cp", p.cp}, {"ep", p.ep}};
  if (megatron) all["sizes"]["etp"] = p.etp;
  all["groups"] = ordered_json::array();
  for (const costmodel::ProcessGroups& groups : process_groups(p, of.layout)) {
    const std::string network = network_of(groups, of);
    all["groups"].push_back({{"kind", groups.kind},
                             {"use", groups.use},
                             {"network", network.empty() ? ordered_json() : ordered_json(network)},
                             {"ranks", groups.groups}});
  }
  return all.dump(2) + "\n";
}

}  // namespace planner
