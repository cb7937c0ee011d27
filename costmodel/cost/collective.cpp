#include "costmodel/cost/collective.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "costmodel/base/error.hpp"

namespace costmodel {

namespace {

double rounds(int n) { return n > 1 ? std::bit_width(static_cast<unsigned>(n - 1)) : 0; }

// Visits every tier the group crosses with the number of links out of one inner unit (`rails`) and
// of hops along the ring that cross it.
template <class Visit>
void for_each_tier(const GroupLayout& group, Visit visit) {
  double rails = 1;
  double outer = group.size;  // units of tier i-1 in the group
  for (std::size_t i = 0; i < group.tiers; ++i) {
    const double fan = group.fan[i];
    if (fan > 1) {
      const double next = outer / fan;
      visit(i, rails, next > 1 ? outer - next : outer - 1, group.fan[i]);
      outer = next;
    }
    rails *= fan;
  }
}

Seconds fixed_of(const GroupLayout& group, const ClusterSpec& cluster) {
  const int outermost = group.outermost();
  return outermost < 0 ? Seconds(0) : cluster.tiers[static_cast<std::size_t>(outermost)].fixed;
}

// The measured time, if one tier connects all ranks and no inner tier does.
std::optional<Seconds> as_measured(CollectiveKind kind, Bytes message, const GroupLayout& group,
                                   const ClusterSpec& cluster) {
  const int tier = group.outermost();
  if (tier < 0 || group.fan[static_cast<std::size_t>(tier)] != group.size) return std::nullopt;
  const auto& tables = cluster.tiers[static_cast<std::size_t>(tier)].measured;
  return measured_collective(tables, kind, message, group.size);
}

// `sent` bytes travel over every edge of the ring, in `laps` laps.
Seconds ring_time(Bytes sent, double laps, const GroupLayout& group, const ClusterSpec& cluster) {
  Seconds transfer, latency;
  for_each_tier(group, [&](std::size_t i, double rails, double hops, int fan) {
    const Tier& tier = cluster.tiers[i];
    transfer = max(transfer, sent / (tier.reached(fan) * rails));
    latency += laps * hops * tier.latency;
  });
  return fixed_of(group, cluster) + latency + transfer;
}

Seconds tree_time(Bytes message, const GroupLayout& group, const ClusterSpec& cluster) {
  Seconds transfer, latency;
  for_each_tier(group, [&](std::size_t i, double rails, double, int fan) {
    const Tier& tier = cluster.tiers[i];
    // Inside a node the tree is a chain: each member sends all pieces up and down except its own.
    // Outside, the message goes up once and down once.
    const double share = i == 0 ? 2 * (fan - 1.0) / fan : 2;
    transfer = max(transfer, share * message / (tier.reached(fan) * rails));
    latency += 2 * (i == 0 ? fan - 1.0 : rounds(fan)) * tier.latency;
  });
  return fixed_of(group, cluster) + latency + transfer;
}

// Pairwise exchange: traffic out of a unit of tier i-1 uses every rank's own link of tier i.
Seconds exchange_time(Bytes message, const GroupLayout& group, const ClusterSpec& cluster) {
  Seconds transfer, latency;
  const double n = group.size;
  double inside = 1;
  for (std::size_t i = 0; i < group.tiers; ++i) {
    if (group.fan[i] > 1) {
      const double here = inside * group.fan[i];
      const double leaving = i + 1 < group.tiers && group.outermost() > static_cast<int>(i)
                                 ? here - inside
                                 : n - inside;
      const Tier& tier = cluster.tiers[i];
      transfer = max(transfer, message * (leaving / n) / tier.reached(group.fan[i]));
      latency += rounds(group.fan[i]) * tier.latency;
    }
    inside *= group.fan[i];
  }
  return fixed_of(group, cluster) + latency + transfer;
}

Seconds broadcast_time(Bytes message, const GroupLayout& group, const ClusterSpec& cluster) {
  Seconds transfer, latency;
  for_each_tier(group, [&](std::size_t i, double, double, int fan) {
    const Tier& tier = cluster.tiers[i];
    transfer = max(transfer, message / tier.reached(fan));
    latency += rounds(fan) * tier.latency;
  });
  return fixed_of(group, cluster) + latency + transfer;
}

}  // namespace

Bytes collective_bytes(CollectiveKind kind, Bytes message, int ranks) {
  const double others = static_cast<double>(ranks - 1) / ranks;
  switch (kind) {
    case CollectiveKind::none: return Bytes(0);
    case CollectiveKind::all_reduce: return 2 * others * message;
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all:
    case CollectiveKind::ring:
    case CollectiveKind::scatter:
    case CollectiveKind::gather: return others * message;
    case CollectiveKind::broadcast: return ranks > 1 ? message : Bytes(0);
    case CollectiveKind::send: return message;
  }
  return Bytes(0);
}

Seconds collective_time(CollectiveKind kind, Bytes message, const GroupLayout& group,
                        const ClusterSpec& cluster, Algorithm algorithm) {
  if (group.size == 1 || message.value == 0) return Seconds(0);
  const Bytes sent = collective_bytes(kind, message, group.size);
  switch (kind) {
    case CollectiveKind::none: return Seconds(0);
    case CollectiveKind::all_reduce:
      return algorithm == Algorithm::tree ? tree_time(message, group, cluster)
                                          : ring_time(sent, 2, group, cluster);
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter: return ring_time(sent, 1, group, cluster);
    case CollectiveKind::all_to_all: return exchange_time(message, group, cluster);
    case CollectiveKind::broadcast: return broadcast_time(message, group, cluster);
    case CollectiveKind::scatter:
    case CollectiveKind::gather:
      return broadcast_time(sent, group, cluster);  // the root's link carries all of it
    case CollectiveKind::send:
      return transfer_time(message, static_cast<std::size_t>(group.outermost()), 1, cluster);
    case CollectiveKind::ring:  // one of the rings' ranks in a unit sends out of it at a time
      return (group.size - 1) * transfer_time(message / group.size,
                                              static_cast<std::size_t>(group.outermost()),
                                              group.stride, cluster);
  }
  return Seconds(0);
}

Seconds collective_time(CollectiveKind kind, Bytes message, const GroupLayout& group,
                        const ClusterSpec& cluster) {
  if (group.size == 1 || message.value == 0) return Seconds(0);
  if (const auto measured = as_measured(kind, message, group, cluster)) return *measured;
  const Seconds ring = collective_time(kind, message, group, cluster, Algorithm::ring);
  if (kind != CollectiveKind::all_reduce) return ring;
  return min(ring, collective_time(kind, message, group, cluster, Algorithm::tree));
}

Seconds transfer_time(Bytes message, std::size_t tier, std::int64_t senders,
                      const ClusterSpec& cluster) {
  SHARDPLAN_CHECK(tier < cluster.tiers.size() && senders >= 1);
  const Tier& t = cluster.tiers[tier];
  if (tier == 0 || senders == 1) {
    if (const auto time = measured_collective(t.measured, CollectiveKind::send, message, 2))
      return *time;
  }
  if (tier == 0) return t.fixed + t.latency + message / t.reached(2);  // a pair of one unit
  double bandwidth = t.bandwidth.value;
  if (t.single > t.bandwidth) {
    const auto unit = static_cast<double>(cluster.tiers[tier - 1].devices);
    bandwidth =
        std::min(t.single.value, bandwidth * unit / std::min(unit, static_cast<double>(senders)));
  }
  return t.fixed + t.latency + message / BytesPerSecond(bandwidth * t.efficiency);
}

void Traffic::add(CollectiveKind kind, Bytes bytes) {
  switch (kind) {
    case CollectiveKind::none: break;
    case CollectiveKind::all_reduce: all_reduce += bytes; break;
    case CollectiveKind::all_gather:
    case CollectiveKind::gather: all_gather += bytes; break;
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::scatter: reduce_scatter += bytes; break;
    case CollectiveKind::all_to_all: all_to_all += bytes; break;
    case CollectiveKind::broadcast:
    case CollectiveKind::ring:
    case CollectiveKind::send: send += bytes; break;
  }
}

}  // namespace costmodel
