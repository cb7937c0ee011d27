// The exchange of routed tokens between expert-parallel ranks: how many copies of a token travel
// over each tier of the network, and how long they take.
#pragma once

#include <cstdint>

#include "costmodel/base/units.hpp"
#include "costmodel/machine/cluster_spec.hpp"
#include "costmodel/plan/expert_recipe.hpp"
#include "costmodel/plan/mesh.hpp"

namespace costmodel {

// How a token chooses its experts.
struct ExpertRouting {
  Dispatcher dispatcher = Dispatcher::alltoall;
  std::int64_t top_k = 1;
  std::int64_t groups = 0, groups_per_token = 0;  // ModelSpec::expert_groups; 0: among all experts
  double efficiency = 1;  // of kernels that send one copy a unit, relative to a tier's collectives
  std::int64_t experts = 0;  // 0: so many that a token's choices are independent of one another
};

// Mean number of `units` equal parts of the experts in which a token has a chosen one: of u parts
// of E experts u · (1 - C(E - E/u, k) / C(E, k)), for a token takes each expert once. With groups,
// those of the groups that the token chose.
double units_chosen(double units, const ExpertRouting& routing);

struct ExpertExchange {
  Seconds time;
  Bytes sent;  // by one device, over all tiers
};

// Dispatch or combine of `message` bytes, top_k copies of every token of a rank. alltoall sends
// every copy by itself. deepep and hybridep send over a tier one copy to each unit of the faster
// tiers inside it (DeepSeek-AI 2024, arXiv:2412.19437, section 3.2.2). `routed`: of HybridEP's
// dispatch, whose copies take along the token's probabilities of all experts in a domain of the
// fastest links, the rank's tokens; backward their gradients come back so.
ExpertExchange expert_exchange(Bytes message, const ExpertRouting& routing,
                               const GroupLayout& group, const ClusterSpec& cluster,
                               double routed = 0);

// Before HybridEP's dispatch every rank of the group gets which experts each token of all ranks has
// chosen, a byte an expert (deepseek-ai/DeepEP @94a9f8f6b146, csrc/hybrid_ep/executor/executor.cu,
// allgather_routing_map).
ExpertExchange routing_map(const ExpertRouting& routing, const GroupLayout& group,
                           const ClusterSpec& cluster, double routed);

}  // namespace costmodel
