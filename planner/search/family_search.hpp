// The best layouts of one family of pipelines: a part of search_layouts().
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/search/best_plans.hpp"
#include "planner/search/effort.hpp"
#include "planner/search/layout.hpp"

namespace planner {

struct BoundedFamily {
  costmodel::Seconds bound;
  std::uint64_t order = 0;
  costmodel::ParallelPlan plan;
};

// The families of the scenario's uneven pipelines, the least bound first.
std::vector<BoundedFamily> bounded_families(const costmodel::Scenario& scenario);

// The result of a family: plans that may enter the ranking, and a lower bound on the time that its
// members could still reach.
struct OpenedFamily {
  std::vector<Ranked> found;
  costmodel::Seconds bound{infinity};
  std::uint64_t sliced = 0, improved = 0, effort = 0;
  bool expired = false, spent = false;
};

// What all layouts of a member with so many chunks have in common: the work of a micro-batch on all
// stages, of the plan that least_work() makes of it.
struct SharedWork {
  costmodel::Recompute recompute;
  int zero = 0;
  std::int64_t micro_batches = 0;
  costmodel::Seconds work;
};

// Of one thread. `podium`, the ranking so far, says what is worth looking at.
class FamilySearch {
 public:
  FamilySearch(const costmodel::Scenario& scenario, const Podium& podium,
               const std::function<bool()>& expired, std::uint64_t most);

  OpenedFamily open(const BoundedFamily& family);

 private:
  void look_at(const BoundedFamily& family, OpenedFamily& result);
  void try_layout(const costmodel::ParallelPlan& plan, std::uint64_t& order, OpenedFamily& result);
  bool spend_pricing(const costmodel::ParallelPlan& plan);
  Spend spend();
  LayoutStages& stages_of(const costmodel::ParallelPlan& member);
  std::vector<int> layout(const costmodel::ParallelPlan& family, int chunks, int start);
  void try_members(const std::vector<costmodel::ParallelPlan>& all, std::uint64_t order,
                   bool partial, std::array<bool, 4>& left, OpenedFamily& result);
  bool layouts_fit(const std::vector<costmodel::ParallelPlan>& all,
                   const std::array<bool, 4>& left);
  const SharedWork& shared_of(const costmodel::ParallelPlan& member,
                              const costmodel::PlanCost** priced = nullptr);
  bool overflow(const costmodel::ParallelPlan& member);
  void leave_too_large(std::array<bool, 4>& left) const;
  bool try_member(costmodel::ParallelPlan member, std::uint64_t order, OpenedFamily& result);
  bool try_cuts(const costmodel::ParallelPlan& member, std::uint64_t order, OpenedFamily& result);
  costmodel::Seconds try_rest(costmodel::ParallelPlan member, costmodel::Seconds bound,
                              costmodel::Seconds best, std::uint64_t order, OpenedFamily& result);
  bool try_chunks(costmodel::ParallelPlan member, const costmodel::PlanCost* priced,
                  std::uint64_t order, OpenedFamily& result);
  void regroup(costmodel::ParallelPlan& member, costmodel::Seconds bound, Layout& layout);
  costmodel::Seconds improve(costmodel::ParallelPlan member, costmodel::Seconds bound,
                             std::uint64_t order, OpenedFamily& result);
  Ranked plainly(Ranked found);

  const costmodel::Scenario* s_;
  const Podium* podium_;
  const std::function<bool()>* expired_;
  std::uint64_t most_;  // effort for a family
  Effort effort_;
  costmodel::Bytes limit_;
  costmodel::Evaluator evaluator_;
  bool open_ = false;                // whether the layout's work and states left any member
  std::vector<SharedWork> shared_;   // of the family that is open, with so many chunks
  std::deque<LayoutStages> stages_;  // of the family's members of one chunk, once looked at
  std::array<std::optional<bool>, 4> overflows_{};  // by ZeRO stage, of the family
  std::array<bool, 4> too_large_{};  // by ZeRO stage, of the layout of chunks that is looked at
  std::optional<std::vector<int>> by_cost_;  // layers by rank of the family that is open
};

}  // namespace planner
