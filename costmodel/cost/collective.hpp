// What a collective sends and how long it takes, over a group that spans network tiers.
//
// Bytes are exact and per device (Thakur et al. 2005; Chan et al. 2007): for a message of S bytes
// over n ranks an all-reduce sends 2·S·(n-1)/n, an all-gather or reduce-scatter S·(n-1)/n, an
// all-to-all S·(n-1)/n, a broadcast S, a scatter or gather S·(n-1)/n at the root.
//
// Time = fixed + hops·latency + bytes / (bandwidth·efficiency), for the slowest tier crossed. A
// ring through a unit of r ranks leaves it over r links at once (one a rank, as NCCL's channels
// do), so tier i offers r_i = the group's ranks in one unit of tier i-1. The all-reduce takes the
// better of ring and double binary tree (Sanders et al. 2009). Where a tier has measured times for
// the kind and the number of ranks, and joins all of them by itself, those are taken instead,
// unless an algorithm is asked for.
#pragma once

#include "costmodel/base/units.hpp"
#include "costmodel/machine/cluster_spec.hpp"
#include "costmodel/operators/op.hpp"
#include "costmodel/plan/mesh.hpp"

namespace costmodel {

// Bytes one device sends. `message`: what every rank holds after all_reduce or all_gather, before
// reduce_scatter, all_to_all or scatter; of a ring, all blocks that go round.
Bytes collective_bytes(CollectiveKind kind, Bytes message, int ranks);

enum class Algorithm { ring, tree };

Seconds collective_time(CollectiveKind kind, Bytes message, const GroupLayout& group,
                        const ClusterSpec& cluster);
Seconds collective_time(CollectiveKind kind, Bytes message, const GroupLayout& group,
                        const ClusterSpec& cluster, Algorithm algorithm);

// A point-to-point transfer over tier `tier`, when `senders` devices of one unit of the tier below
// send at the same time: they share its links, and none is faster than its own.
Seconds transfer_time(Bytes message, std::size_t tier, std::int64_t senders,
                      const ClusterSpec& cluster);

// Bytes a device sends in one iteration, by kind.
struct Traffic {
  Bytes all_reduce, all_gather, reduce_scatter, all_to_all, send;
  void add(CollectiveKind kind, Bytes bytes);
  Traffic& operator+=(const Traffic& o);
  Traffic operator*(double f) const;
  Bytes total() const { return all_reduce + all_gather + reduce_scatter + all_to_all + send; }
};

}  // namespace costmodel
