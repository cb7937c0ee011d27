#include "costmodel/cost/expert_exchange.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "costmodel/cost/collective.hpp"

namespace costmodel {

namespace {

// The chance that none of `taken` draws without replacement out of `all` is among `own`.
double none_of(double own, double taken, double all) {
  double chance = 1;
  for (double i = 0; i < taken; ++i) chance *= std::max(0.0, all - own - i) / (all - i);
  return chance;
}

double ways(double n, double k) {
  double count = 1;
  for (double i = 0; i < k; ++i) count *= (n - i) / (i + 1);
  return count;
}

// Ranks of the group in one unit of the tiers inside tier i that are faster than it. A copy enters
// such a unit once, and is passed on inside.
double unit_inside(std::size_t i, const GroupLayout& group, const ClusterSpec& cluster) {
  double inside = 1;
  for (std::size_t j = 0; j < i; ++j) {
    if (cluster.tiers[j].bandwidth > cluster.tiers[i].bandwidth) inside *= group.fan[j];
  }
  return inside;
}

// Of a row of hidden_dim values HybridEP sends the probabilities of the experts of one domain, in
// fp32 (csrc/hybrid_ep/backend/hybrid_ep_backend.cuh, expert_output_prob: NUM_OF_EXPERTS_PER_RANK *
// NUM_OF_RANKS_PER_NODE of them).
Bytes probabilities(double routed, const ExpertRouting& routing, const GroupLayout& group,
                    const ClusterSpec& cluster) {
  if (routed == 0) return {};
  const double n = group.size;
  const double inside = unit_inside(static_cast<std::size_t>(group.outermost()), group, cluster);
  const double domain = inside > 1 ? inside : n;
  return Bytes(routed * 4 * static_cast<double>(routing.experts) * domain / n);
}

ExpertExchange once_a_unit(Bytes message, const ExpertRouting& routing, const GroupLayout& group,
                           const ClusterSpec& cluster, double routed) {
  const Bytes copy =
      message / static_cast<double>(routing.top_k) + probabilities(routed, routing, group, cluster);
  const double n = group.size;
  ExpertExchange exchange;
  Seconds transfer, latency;
  double here = 1;  // ranks of the group in one unit of this tier
  for (std::size_t i = 0; i < group.tiers; ++i) {
    const double fan = group.fan[i];
    here *= fan;
    if (fan <= 1) continue;
    const Tier& tier = cluster.tiers[i];
    const double inside = unit_inside(i, group, cluster), units = n / inside;
    // Of the copies, one for each unit, those that do not stay where they are.
    const Bytes crossing = copy * (units_chosen(units, routing) * (1 - inside / here));
    transfer = max(transfer, crossing / (tier.reached(group.fan[i]) * routing.efficiency));
    latency +=
        static_cast<double>(std::bit_width(static_cast<unsigned>(group.fan[i] - 1))) * tier.latency;
    exchange.sent += crossing;
  }
  const int outermost = group.outermost();
  const Seconds fixed =
      outermost < 0 ? Seconds(0) : cluster.tiers[static_cast<std::size_t>(outermost)].fixed;
  exchange.time = fixed + latency + transfer;
  return exchange;
}

}  // namespace

double units_chosen(double units, const ExpertRouting& routing) {
  const auto k = static_cast<double>(routing.top_k);
  const auto groups = static_cast<double>(routing.groups);
  const auto taken = static_cast<double>(routing.groups_per_token);
  constexpr double independent = 1e9;  // so many experts that choices are
  const double experts = routing.experts > 0 ? static_cast<double>(routing.experts) : independent;
  if (routing.groups == 0 || taken >= groups)
    return units * (1 - none_of(experts / units, k, experts));
  const double of_group = experts / groups, open = taken * of_group;
  if (units >= groups) return units * taken / groups * (1 - none_of(experts / units, k, open));
  const double own = groups / units;  // groups of a unit, of which j are chosen
  double missed = none_of(own, taken, groups);
  for (double j = 1; j <= std::min(own, taken); ++j) {
    const double chance = ways(own, j) * ways(groups - own, taken - j) / ways(groups, taken);
    missed += chance * none_of(j * of_group, k, open);
  }
  return units * (1 - missed);
}

ExpertExchange expert_exchange(Bytes message, const ExpertRouting& routing,
                               const GroupLayout& group, const ClusterSpec& cluster,
                               double routed) {
  if (group.size == 1 || message.value == 0) return {};
  if (sends_once_a_rank(routing.dispatcher))
    return once_a_unit(message, routing, group, cluster, routed);
  return {collective_time(CollectiveKind::all_to_all, message, group, cluster),
          collective_bytes(CollectiveKind::all_to_all, message, group.size)};
}

ExpertExchange routing_map(const ExpertRouting& routing, const GroupLayout& group,
                           const ClusterSpec& cluster, double routed) {
  if (group.size == 1 || routed == 0) return {};
  const Bytes map(routed * static_cast<double>(routing.experts) * group.size);
  return {collective_time(CollectiveKind::all_gather, map, group, cluster),
          collective_bytes(CollectiveKind::all_gather, map, group.size)};
}

}  // namespace costmodel
