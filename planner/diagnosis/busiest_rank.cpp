#include "planner/diagnosis/busiest_rank.hpp"

#include <algorithm>
#include <vector>

#include "costmodel/estimate/breakdown.hpp"
#include "costmodel/estimate/evaluator.hpp"

namespace planner {

using namespace costmodel;

namespace {

// The rank whose stages take longest for a micro-batch.
int longest_at_work(const Estimate& e) {
  std::vector<Seconds> work(static_cast<std::size_t>(e.plan.pp));
  for (std::size_t k = 0; k < e.stage_forward.size(); ++k) {
    const int rank = rank_of(e.plan.schedule, e.plan.pp, static_cast<int>(k));
    work[static_cast<std::size_t>(rank)] += e.stage_forward[k] + e.stage_backward[k];
  }
  return static_cast<int>(std::max_element(work.begin(), work.end()) - work.begin());
}

// How many losses are larger than the wait, which computation is none of.
int larger_losses(const costmodel::Breakdown& b, Seconds wait) {
  using costmodel::Breakdown;
  return static_cast<int>(std::ranges::count_if(breakdown_parts, [&](auto part) {
    return part != &Breakdown::compute && part != &Breakdown::imbalance && b.*part > wait;
  }));
}

}  // namespace

std::optional<BusiestRank> busiest_rank(const Estimate& e, Evaluator& evaluator) {
  const Seconds wait = e.breakdown.imbalance - e.longest_samples;
  if (!e.plan.replica_groups.empty() || wait < e.iteration * least_wait) return {};
  if (larger_losses(e.breakdown, wait) > 1) return {};
  BusiestRank busiest{.rank = longest_at_work(e), .breakdown = {}};
  if (busiest.rank == e.critical_rank) return {};
  Ending end = evaluator.end_of(e.plan);
  end.critical = static_cast<std::size_t>(busiest.rank);
  const Seconds transfers = e.breakdown.pp_comm / end.own_runs;
  busiest.breakdown = breakdown_of(evaluator.cost(e.plan), e.plan, end, {transfers, Seconds(0)},
                                   evaluator.training().stack.host);
  busiest.breakdown *= end.own_runs;
  return busiest;
}

}  // namespace planner
