#include "planner/report/json_collective.hpp"

#include <nlohmann/json.hpp>

namespace planner {

using nlohmann::ordered_json;

namespace {

ordered_json row_json(const CollectivePrice& p, const CollectiveGroup& group) {
  ordered_json row{{"primitive", costmodel::collective_names[static_cast<std::size_t>(p.kind)]},
                   {"bytes", p.message.value},
                   {"time_s", p.time.value},
                   {"algbw_bytes_per_s", p.algorithm_bandwidth.value},
                   {"busbw_bytes_per_s", p.bus_bandwidth.value},
                   {"bus_factor", p.bus_factor},
                   {"sent_bytes", p.sent.value},
                   {"algorithm", p.algorithm},
                   {"measured", p.measured},
                   {"fixed_s", p.terms.fixed.value},
                   {"tiers", ordered_json::array()}};
  for (const costmodel::TierTerm& term : p.terms.tiers) {
    const auto& tier = group.cluster.tiers[term.tier];
    row["tiers"].push_back({{"tier", tier.name},
                            {"carried_bytes", term.carried.value},
                            {"rate_bytes_per_s", term.rate.value},
                            {"hops", term.hops},
                            {"latency_s", tier.latency.value}});
  }
  return row;
}

}  // namespace

std::string collective_json(const std::vector<CollectivePrice>& prices,
                            const CollectiveGroup& group) {
  ordered_json all{{"cluster", group.cluster.name},
                   {"ranks", group.layout.size},
                   {"stride", group.layout.stride},
                   {"rows", ordered_json::array()}};
  for (const CollectivePrice& price : prices) all["rows"].push_back(row_json(price, group));
  if (prices.size() == 1 && prices.front().kind == costmodel::CollectiveKind::all_reduce) {
    all["ways"] = ordered_json::array();
    for (const SumWay& way : ways_to_sum(prices.front().message, group))
      all["ways"].push_back({{"name", way.name}, {"time_s", way.time.value}});
  }
  return all.dump(2) + "\n";
}

}  // namespace planner
