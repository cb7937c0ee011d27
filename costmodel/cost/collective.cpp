#include "costmodel/cost/collective.hpp"

#include <algorithm>
#include <bit>

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

// A piece that a rank of a broadcast or reduction sends on when it has it, on each of its links: a
// step of NCCL's buffer (4 MiB in 8 steps: DEFAULT_BUFFSIZE and NCCL_STEPS).
constexpr double piece_bytes = 512 * 1024.0;

// Until the last rank of a pipeline has its first piece, without latencies; the slowest hop's is
// part of the transfer.
Seconds first_piece(Bytes message, const GroupLayout& group, const ClusterSpec& cluster) {
  Seconds all, slowest;
  for_each_tier(group, [&](std::size_t i, double rails, double hops, int fan) {
    const Tier& tier = cluster.tiers[i];
    const double links = rails * std::min(1.0, tier.bandwidth / max(tier.bandwidth, tier.single));
    const Seconds hop =
        Bytes(std::min(message.value, links * piece_bytes)) / (tier.reached(fan) * rails);
    all += hops * hop;
    slowest = max(slowest, hop);
  });
  return all - slowest;
}

bool in_pieces(CollectiveKind kind) {
  return kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce;
}

Seconds fixed_of(const GroupLayout& group, const ClusterSpec& cluster) {
  const int outermost = group.outermost();
  return outermost < 0 ? Seconds(0) : cluster.tiers[static_cast<std::size_t>(outermost)].fixed;
}

// Adds up the terms that `visit_terms` tells: the slowest transfer, and every hop.
template <class VisitTerms>
Seconds time_of(VisitTerms visit_terms, const GroupLayout& group, const ClusterSpec& cluster) {
  Seconds transfer, latency;
  visit_terms([&](const TierTerm& term) {
    transfer = max(transfer, term.carried / term.rate);
    latency += term.hops * cluster.tiers[term.tier].latency;
  });
  return fixed_of(group, cluster) + latency + transfer;
}

// `sent` bytes travel over every edge of the ring, in `laps` laps.
auto ring_terms(Bytes sent, double laps, const GroupLayout& group, const ClusterSpec& cluster) {
  return [=, &group, &cluster](auto visit) {
    for_each_tier(group, [&](std::size_t i, double rails, double hops, int fan) {
      visit(TierTerm{i, sent, cluster.tiers[i].reached(fan) * rails, laps * hops});
    });
  };
}

// Inside a node the tree is a chain: each member sends all pieces up and down except its own.
// Outside, the message goes up once and down once.
auto tree_terms(Bytes message, const GroupLayout& group, const ClusterSpec& cluster) {
  return [=, &group, &cluster](auto visit) {
    for_each_tier(group, [&](std::size_t i, double rails, double, int fan) {
      const double share = i == 0 ? 2 * (fan - 1.0) / fan : 2;
      visit(TierTerm{i, share * message, cluster.tiers[i].reached(fan) * rails,
                     2 * (i == 0 ? fan - 1.0 : rounds(fan))});
    });
  };
}

// Pairwise exchange: traffic out of a unit of tier i-1 uses every rank's own link of tier i.
auto exchange_terms(Bytes message, const GroupLayout& group, const ClusterSpec& cluster) {
  return [=, &group, &cluster](auto visit) {
    const double n = group.size;
    double inside = 1;
    for (std::size_t i = 0; i < group.tiers; ++i) {
      if (group.fan[i] > 1) {
        const double here = inside * group.fan[i];
        const double leaving = i + 1 < group.tiers && group.outermost() > static_cast<int>(i)
                                   ? here - inside
                                   : n - inside;
        visit(TierTerm{i, message * (leaving / n), cluster.tiers[i].reached(group.fan[i]),
                       rounds(group.fan[i])});
      }
      inside *= group.fan[i];
    }
  };
}

// One rank's link carries all of it at every tier, down a binomial tree.
auto root_terms(Bytes sent, const GroupLayout& group, const ClusterSpec& cluster) {
  return [=, &group, &cluster](auto visit) {
    for_each_tier(group, [&](std::size_t i, double, double, int fan) {
      visit(TierTerm{i, sent, cluster.tiers[i].reached(fan), rounds(fan)});
    });
  };
}

// Rate of a point-to-point transfer while `senders` devices of one unit of the tier below send.
BytesPerSecond transfer_rate(std::size_t tier, std::int64_t senders, const ClusterSpec& cluster) {
  const Tier& t = cluster.tiers[tier];
  if (tier == 0) return t.reached(2);  // a pair of one unit
  double bandwidth = t.bandwidth.value;
  if (t.single > t.bandwidth) {
    const auto unit = static_cast<double>(cluster.tiers[tier - 1].devices);
    bandwidth =
        std::min(t.single.value, bandwidth * unit / std::min(unit, static_cast<double>(senders)));
  }
  return BytesPerSecond(bandwidth * t.efficiency);
}

auto transfer_terms(Bytes message, const GroupLayout& group, const ClusterSpec& cluster) {
  return [=, &cluster](auto visit) {
    const auto tier = static_cast<std::size_t>(group.outermost());
    visit(TierTerm{tier, message, transfer_rate(tier, 1, cluster), 1});
  };
}

// Calls `use` with what visits the terms of any kind but `ring`.
template <class Use>
auto with_terms(CollectiveKind kind, Bytes message, const GroupLayout& group,
                const ClusterSpec& cluster, Algorithm algorithm, Use use) {
  const Bytes sent = collective_bytes(kind, message, group.size);
  switch (kind) {
    case CollectiveKind::all_reduce:
      return algorithm == Algorithm::tree ? use(tree_terms(message, group, cluster))
                                          : use(ring_terms(sent, 2, group, cluster));
    case CollectiveKind::all_to_all: return use(exchange_terms(message, group, cluster));
    case CollectiveKind::scatter:
    case CollectiveKind::gather: return use(root_terms(sent, group, cluster));
    case CollectiveKind::send: return use(transfer_terms(message, group, cluster));
    case CollectiveKind::none:
    case CollectiveKind::ring:
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce: break;
  }
  return use(ring_terms(sent, 1, group, cluster));
}

// The units of the innermost tier that the group crosses, and the group of one rank of each.
struct Levels {
  GroupLayout inside, between;
};
Levels levels_of(const GroupLayout& group) {
  Levels levels{group, group};
  std::size_t inner = 0;
  while (inner < group.tiers && group.fan[inner] <= 1) ++inner;
  levels.inside.size = group.fan[inner];
  for (std::size_t i = 0; i < group.tiers; ++i)
    (i == inner ? levels.between : levels.inside).fan[i] = 1;
  levels.between.size = static_cast<int>(ceil_div(group.size, levels.inside.size));
  levels.between.stride = group.stride * levels.inside.size;
  return levels;
}

CollectiveTerms hierarchical_terms(Bytes message, const GroupLayout& group,
                                   const ClusterSpec& cluster) {
  using enum CollectiveKind;
  const auto [inside, between] = levels_of(group);
  CollectiveTerms all = collective_terms(reduce_scatter, message, inside, cluster, Algorithm::ring);
  const auto add = [&all](const CollectiveTerms& phase) {
    all.fixed = all.fixed + phase.fixed;
    all.time = all.time + phase.time;
    all.tiers.insert(all.tiers.end(), phase.tiers.begin(), phase.tiers.end());
  };
  // All ranks of a unit do so at once, each over its own link: a ring of one rank a unit each.
  add(collective_terms(all_reduce, message / inside.size, between, cluster, Algorithm::ring));
  add(collective_terms(all_gather, message, inside, cluster, Algorithm::ring));
  return all;
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
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce: return ranks > 1 ? message : Bytes(0);
    case CollectiveKind::send: return message;
  }
  return Bytes(0);
}

CollectiveTerms collective_terms(CollectiveKind kind, Bytes message, const GroupLayout& group,
                                 const ClusterSpec& cluster, Algorithm algorithm) {
  SHARDPLAN_CHECK(kind != CollectiveKind::none && kind != CollectiveKind::ring);
  if (group.size == 1 || message.value == 0) return {};
  if (algorithm == Algorithm::hierarchical && kind == CollectiveKind::all_reduce)
    return hierarchical_terms(message, group, cluster);
  CollectiveTerms terms{fixed_of(group, cluster), {}, {}};
  with_terms(kind, message, group, cluster, algorithm, [&](auto visit_terms) {
    visit_terms([&](const TierTerm& term) { terms.tiers.push_back(term); });
    terms.time = time_of(visit_terms, group, cluster);
  });
  if (in_pieces(kind)) {
    const Seconds piece = first_piece(message, group, cluster);
    terms.fixed += piece;
    terms.time += piece;
  }
  return terms;
}

Seconds collective_time(CollectiveKind kind, Bytes message, const GroupLayout& group,
                        const ClusterSpec& cluster, Algorithm algorithm) {
  if (group.size == 1 || message.value == 0) return Seconds(0);
  if (algorithm == Algorithm::hierarchical && kind == CollectiveKind::all_reduce)
    return hierarchical_terms(message, group, cluster).time;
  switch (kind) {
    case CollectiveKind::none: return Seconds(0);
    case CollectiveKind::send:
      return transfer_time(message, static_cast<std::size_t>(group.outermost()), 1, cluster);
    case CollectiveKind::ring:  // one of the rings' ranks in a unit sends out of it at a time
      return (group.size - 1) * transfer_time(message / group.size,
                                              static_cast<std::size_t>(group.outermost()),
                                              group.stride, cluster);
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
      return collective_terms(kind, message, group, cluster, algorithm).time;
    default:
      return with_terms(kind, message, group, cluster, algorithm,
                        [&](auto visit_terms) { return time_of(visit_terms, group, cluster); });
  }
}

namespace {

std::optional<Seconds> as_measured(CollectiveKind kind, Bytes message, const GroupLayout& group,
                                   const ClusterSpec& cluster) {
  const int tier = group.outermost();
  if (tier < 0 || group.fan[static_cast<std::size_t>(tier)] != group.size) return std::nullopt;
  const auto& tables = cluster.tiers[static_cast<std::size_t>(tier)].measured;
  return measured_collective(tables, kind, message, group.size);
}

}  // namespace

Seconds collective_time(CollectiveKind kind, Bytes message, const GroupLayout& group,
                        const ClusterSpec& cluster) {
  if (group.size == 1 || message.value == 0) return Seconds(0);
  if (const auto measured = as_measured(kind, message, group, cluster)) return *measured;
  const Seconds ring = collective_time(kind, message, group, cluster, Algorithm::ring);
  if (kind != CollectiveKind::all_reduce) return ring;
  return min(ring, collective_time(kind, message, group, cluster, Algorithm::tree));
}

double bus_bandwidth_factor(CollectiveKind kind, int ranks) {
  const double others = static_cast<double>(ranks - 1) / ranks;
  switch (kind) {
    case CollectiveKind::all_reduce: return 2 * others;
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all:
    case CollectiveKind::scatter:
    case CollectiveKind::gather: return others;
    case CollectiveKind::none:
    case CollectiveKind::ring:
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
    case CollectiveKind::send: return 1;
  }
  return 1;
}

Seconds transfer_time(Bytes message, std::size_t tier, std::int64_t senders,
                      const ClusterSpec& cluster) {
  SHARDPLAN_CHECK(tier < cluster.tiers.size() && senders >= 1);
  const Tier& t = cluster.tiers[tier];
  if (tier == 0 || senders == 1) {
    if (const auto time = measured_collective(t.measured, CollectiveKind::send, message, 2))
      return *time;
  }
  return t.fixed + t.latency + message / transfer_rate(tier, senders, cluster);
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
    case CollectiveKind::reduce:
    case CollectiveKind::ring:
    case CollectiveKind::send: send += bytes; break;
  }
}

}  // namespace costmodel
