#include "planner/report/json_groups.hpp"

#include <nlohmann/json.hpp>

namespace planner {

using namespace costmodel;

std::string groups_json(const GroupsOf& of) {
  using nlohmann::ordered_json;
  const ParallelPlan& p = of.plan;
  const bool megatron = of.layout == RankLayout::megatron;
  ordered_json all{{"layout", rank_layout_names[static_cast<std::size_t>(of.layout)]}};
  all["order"] = megatron ? p.rank_order : "tp-cp-pp-dp";
  all["ranks"] = p.devices();
  all["sizes"] = {{"tp", p.tp}, {"pp", p.pp}, {"dp", p.dp}, {"cp", p.cp}, {"ep", p.ep}};
  if (megatron) all["sizes"]["etp"] = p.etp;
  // A line a kind: an array of arrays is read whole, and would take a line a rank.
  std::string text = all.dump(2);
  text.erase(text.size() - 2);  // the end of the object
  text += ",\n  \"groups\": [";
  const char* between = "\n    ";
  for (const ProcessGroups& groups : process_groups(p, of.layout)) {
    const std::string network = network_of(groups, of);
    const ordered_json row{{"kind", groups.kind},
                           {"use", groups.use},
                           {"network", network.empty() ? ordered_json() : ordered_json(network)},
                           {"ranks", groups.groups}};
    text += between + row.dump();
    between = ",\n    ";
  }
  return text + "\n  ]\n}\n";
}

}  // namespace planner
