// Volume and time of a collective over a group that spans network tiers.
//
// Bytes are exact and per device (Thakur et al. 2005; Chan et al. 2007). For a message of S bytes
// over n ranks: all-reduce 2·S·(n-1)/n; all-gather, reduce-scatter and all-to-all S·(n-1)/n;
// broadcast and reduce S; scatter and gather S·(n-1)/n at the root.
//
// Time = fixed + hops·latency + bytes / (bandwidth·efficiency), for the slowest tier crossed. A
// ring leaves a unit of r ranks over r links in parallel (one per rank, as NCCL's channels do), so
// tier i offers r_i links, the number of the group's ranks in one unit of tier i-1. The all-reduce
// uses the faster of ring and double binary tree (Sanders et al. 2009). Broadcast and reduce go
// along the ring once, in pieces, as in NCCL, which has no other algorithm for them
// (src/graph/tuning.cc): what the first piece takes to the last rank is part of their fixed time;
// scatter and gather use the root's own link at every tier. Measured times replace the formula when
// one tier alone connects all ranks and has a table for the kind and the number of ranks, unless
// the caller selects an algorithm.
#pragma once

#include <vector>

#include "costmodel/base/units.hpp"
#include "costmodel/machine/cluster_spec.hpp"
#include "costmodel/operators/op.hpp"
#include "costmodel/plan/mesh.hpp"

namespace costmodel {

// Bytes that one device sends. `message` is what every rank holds after an all_reduce or
// all_gather, before a reduce_scatter, all_to_all or scatter; for a ring, all blocks that travel.
Bytes collective_bytes(CollectiveKind kind, Bytes message, int ranks);

// hierarchical: of an all-reduce; a reduce-scatter inside every unit of the innermost tier crossed,
// an all-reduce between the units by each of their ranks for its share, an all-gather inside (as
// BytePS and NCCL's older SHARP paths; Mikami et al. 2018, arXiv:1811.05233, "2D-Torus").
enum class Algorithm { ring, tree, hierarchical };

// What a collective waits for at a tier.
struct TierTerm {
  std::size_t tier = 0;
  Bytes carried;        // by what leaves a unit of the tier below
  BytesPerSecond rate;  // of its links together, efficiency included
  double hops = 0;      // each takes the tier's latency
};

// The terms of collective_time by the formula: fixed + sum of hops · latency + the largest of
// carried / rate. A hierarchical all-reduce adds up every phase instead. Empty for a group of one.
struct CollectiveTerms {
  Seconds fixed;
  std::vector<TierTerm> tiers;
  Seconds time;
};
CollectiveTerms collective_terms(CollectiveKind kind, Bytes message, const GroupLayout& group,
                                 const ClusterSpec& cluster, Algorithm algorithm);

// The factor by which nccl-tests turns algorithm bandwidth (message / time) into bus bandwidth
// (doc/PERFORMANCE.md of NVIDIA/nccl-tests; src/scatter.cu, gather.cu and sendrecv.cu for those
// that the page leaves out).
double bus_bandwidth_factor(CollectiveKind kind, int ranks);

Seconds collective_time(CollectiveKind kind, Bytes message, const GroupLayout& group,
                        const ClusterSpec& cluster);
Seconds collective_time(CollectiveKind kind, Bytes message, const GroupLayout& group,
                        const ClusterSpec& cluster, Algorithm algorithm);

// Time of a point-to-point transfer over tier `tier` while `senders` devices of one unit of the
// tier below send concurrently: they share its links, and none exceeds its own bandwidth.
Seconds transfer_time(Bytes message, std::size_t tier, std::int64_t senders,
                      const ClusterSpec& cluster);

// Bytes that a device sends per iteration, by kind.
struct Traffic {
  Bytes all_reduce, all_gather, reduce_scatter, all_to_all, send;
  void add(CollectiveKind kind, Bytes bytes);
  Traffic& operator+=(const Traffic& o) {
    all_reduce += o.all_reduce;
    all_gather += o.all_gather;
    reduce_scatter += o.reduce_scatter;
    all_to_all += o.all_to_all;
    send += o.send;
    return *this;
  }
  Traffic operator*(double f) const {
    return {all_reduce * f, all_gather * f, reduce_scatter * f, all_to_all * f, send * f};
  }
  Bytes total() const { return all_reduce + all_gather + reduce_scatter + all_to_all + send; }
  bool operator==(const Traffic&) const = default;
};

}  // namespace costmodel
