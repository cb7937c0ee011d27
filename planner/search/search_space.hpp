// Every plan that the rules, the devices, the batch and the scenario's own keys allow.
//
// Plans come in families: what fixes the work of a micro-batch on a stage (tp, pp, cp and
// its exchange, ep, etp, dp, vpp, micro-batch, sequence parallel, schedule). Members of a family
// differ in recomputation and ZeRO stage, which can only add time to the family's bound; but for
// ZeRO-3, whose weight gradients join no buffer.
#pragma once

#include <cstdint>
#include <vector>

#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/scenario/scenario.hpp"

namespace planner {

struct Family {
  costmodel::ParallelPlan plan;  // recompute none, ZeRO 0 as representative
};

struct SearchSpace {
  std::vector<Family>
      families;  // in a fixed order: tp, pp, cp, vpp, micro-batch, sequence parallel ascending
  std::uint64_t configurations = 0;  // members of all families
};

SearchSpace enumerate(const costmodel::Scenario& scenario);

// The families of pipelines whose layers may be dealt out at will, as 1F1B with one chunk a rank
// and stage_layers as even as they go. Empty when the scenario fixes stage_layers or another
// schedule.
SearchSpace enumerate_uneven(const costmodel::Scenario& scenario);

// The members of a family, cheapest recomputation first.
std::vector<costmodel::ParallelPlan> members(const Family& family,
                                             const costmodel::Scenario& scenario);

// Whether there are members without and with full recomputation. A plan that recomputes the first
// layers of each stage keeps no less than the leaner of these two: when neither fits, none between
// does. Where only a part is offered, the others say nothing about it.
bool brackets_partial(const std::vector<costmodel::ParallelPlan>& members);

// No member is quicker than the quickest of these: the representative, and where members shard
// everything, the same with ZeRO-3.
std::vector<costmodel::ParallelPlan> quickest(const Family& family,
                                              const costmodel::Scenario& scenario);

// The least of `bound(plan)` over them.
template <class Bound>
costmodel::Seconds bound_of(const Family& family, const costmodel::Scenario& scenario,
                            const Bound& bound) {
  const auto plans = quickest(family, scenario);
  costmodel::Seconds least = bound(plans.front());
  for (const auto& plan : plans) least = min(least, bound(plan));
  return least;
}

// Of expert and tensor parallelism of experts, ep and etp.
struct ExpertSizes {
  int ep, etp;
};

// What the scenario and its stack leave open of context and expert parallelism: sizes among the
// divisors of what devices a stage has besides its tensor ranks; how keys and values are exchanged;
// experts over ep ranks, each whole or cut as finely as everything else (Megatron's default).
std::int64_t most_context_ranks(const costmodel::Scenario& scenario);
std::vector<std::int64_t> context_sizes_offered(const costmodel::Scenario& scenario,
                                                std::int64_t devices);
std::vector<costmodel::ContextExchange> exchanges_offered(const costmodel::Scenario& scenario,
                                                          std::int64_t cp);
std::vector<ExpertSizes> expert_sizes_offered(const costmodel::Scenario& scenario, std::int64_t tp);

std::vector<std::int64_t> divisors(std::int64_t n);

}  // namespace planner
