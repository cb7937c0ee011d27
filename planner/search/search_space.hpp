// All plans that the rules, the devices, the batch and the scenario's keys allow.
//
// A family fixes the work of a micro-batch on a stage (tp, pp, cp and its exchange, ep, etp, dp,
// vpp, micro-batch, sequence parallel, schedule). Its members differ in recomputation and ZeRO
// stage, which can only add time to the family's bound, except ZeRO-3, whose weight gradients are
// not accumulated in a buffer. Each member may also take further groups of micro-batches.
#pragma once

#include <cstdint>
#include <vector>

#include "costmodel/estimate/plan_cost.hpp"
#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/scenario/scenario.hpp"

namespace planner {

struct Family {
  costmodel::ParallelPlan plan;  // the representative: recompute none, ZeRO 0
};

struct SearchSpace {
  std::vector<Family>
      families;  // in a fixed order: ascending tp, pp, cp, vpp, micro-batch, sequence parallel
  std::uint64_t configurations = 0;  // total number of members
};

SearchSpace enumerate(const costmodel::Scenario& scenario);

// The families of pipelines for uneven layouts: 1F1B with one chunk per rank and the most even
// stage_layers. Empty when the scenario fixes stage_layers or another schedule.
SearchSpace enumerate_uneven(const costmodel::Scenario& scenario);

// What the members of a family differ in: of n ZeRO stages, member k has recompute[k / n] and
// zero[k % n].
struct MemberChoices {
  std::vector<costmodel::Recompute> recompute;  // cheapest first
  std::vector<int> zero;
};
MemberChoices member_choices(const Family& family, const costmodel::Scenario& scenario);

// The members of a family, cheapest recomputation first.
std::vector<costmodel::ParallelPlan> members(const Family& family,
                                             const costmodel::Scenario& scenario);

// Whether no member of the same ZeRO stage that comes after this one, recomputing more, is faster:
// recomputation only adds time.
bool leads(const costmodel::ParallelPlan& member);

// A bound of a member, priced at `cost`, that holds for those that recompute more too. Interleaved,
// a rank's longer backward may hide more of its gradients' reduction than it adds to another rank's
// drain: none is counted.
costmodel::Seconds bound_with_more(const costmodel::PlanCost& cost,
                                   const costmodel::ParallelPlan& member,
                                   const costmodel::Scenario& scenario);

// Whether the members include none and full recomputation, and a plan that recomputes only the
// first layers of each stage needs at least the memory of the leaner of these two: if neither fits,
// no partial one does. Not where kinds of layers take turns: what recomputes one needs room beside
// those after it that keep less. Nor with a split backward: what its weight gradients wait for is
// the same however much is recomputed. Nor where gradients appear as backward frees activations.
bool brackets_partial(const std::vector<costmodel::ParallelPlan>& members,
                      const costmodel::Scenario& scenario);
bool brackets_partial(const MemberChoices& choices, const Family& family,
                      const costmodel::Scenario& scenario);

// Plans whose fastest bounds all members: the representative, and, if the members include ZeRO-3,
// the same with ZeRO-3; with ZeRO-2 where ZeRO-3 may send activations to the host.
std::vector<costmodel::ParallelPlan> quickest(const Family& family,
                                              const costmodel::Scenario& scenario);

// The minimum of `bound(plan)` over quickest().
template <class Bound>
costmodel::Seconds bound_of(const Family& family, const costmodel::Scenario& scenario,
                            const Bound& bound) {
  const auto plans = quickest(family, scenario);
  costmodel::Seconds least = bound(plans.front());
  for (const auto& plan : plans) least = min(least, bound(plan));
  return least;
}

// Sizes of expert parallelism and of tensor parallelism within experts.
struct ExpertSizes {
  int ep, etp;
};

// The sizes of context and expert parallelism that the scenario and its stack allow: divisors of a
// stage's devices per tensor rank; the exchanges of keys and values; experts over ep ranks,
// unsharded or sharded over tp like everything else (Megatron's default).
std::int64_t most_context_ranks(const costmodel::Scenario& scenario);
std::vector<std::int64_t> context_sizes_offered(const costmodel::Scenario& scenario,
                                                std::int64_t devices);
std::vector<costmodel::ContextExchange> exchanges_offered(const costmodel::Scenario& scenario,
                                                          std::int64_t cp);
std::vector<ExpertSizes> expert_sizes_offered(const costmodel::Scenario& scenario, std::int64_t tp);

// The ways that the scenario and its stack leave for a plan of these sizes to move tokens to their
// experts: the dispatcher that sends least (where asked, each of two), with and without the
// exchange beside computation.
std::vector<costmodel::ExpertRecipe> recipes_offered(const costmodel::Scenario& scenario, int ep,
                                                     int pp, int vpp);

// How many micro-batches go through a chunk of an interleaved plan before the next chunk's turn, as
// OrderChoices::group has it: as written; else the fewest that leave no rest and, where the stack
// offers groups, the next more, which leave transfers time, and all. The first, that of a family,
// holds least; the others do the same work, and fit only where it does. {0}: another schedule.
std::vector<int> micro_batch_groups_offered(const costmodel::Scenario& scenario,
                                            const costmodel::ParallelPlan& plan);

// A bound of the pipeline of a plan, priced at `cost`, in every group up to `widest`: the larger
// the group, the lower the bound.
costmodel::Seconds bound_in_groups(const costmodel::PlanCost& cost,
                                   const costmodel::ParallelPlan& plan, int widest);

std::vector<std::int64_t> divisors(std::int64_t n);

}  // namespace planner
