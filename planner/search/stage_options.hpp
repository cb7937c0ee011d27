// The options of a stage on the submeshes of one group of devices, for stage slicing: Alpa's inner
// problem (Zheng et al. 2022, arXiv:2201.12023, section 5.2) restricted to what a plan can express:
// tensor, context, expert and data parallel size, recomputation and ZeRO stage.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/solvers/stage_slicing.hpp"

namespace planner {

// The choice that an option's tag refers to.
struct StageChoice {
  int group = 0;
  costmodel::StagePlan stage;
};

// Terms common to all stages of one search.
struct StageTerms {
  std::int64_t sequences = 1;  // per micro-batch, over all replicas
  bool sequence_parallel = false;
};

// The recomputations of a stage that the scenario and its stack allow, and its ZeRO stages for a
// number of replicas.
std::vector<costmodel::Recompute> recompute_offered(const costmodel::Scenario& scenario);
std::vector<int> zero_offered(const costmodel::Scenario& scenario, std::int64_t replicas);

// The sizes and exchanges of keys and values that the scenario and its stack allow for a stage on
// `devices` devices that processes `sequences` sequences at a time with tensor groups of `tp`, a
// divisor of `devices`.
std::vector<costmodel::StagePlan> sizes_offered(const costmodel::Scenario& scenario, int devices,
                                                int tp, std::int64_t sequences);

class StageOptions {
 public:
  StageOptions(const costmodel::Scenario& scenario, int group, const StageTerms& terms,
               std::vector<StageChoice>& choices);

  // The slicing problem of this group: the model's layers, embedding first and loss last. Among the
  // options for one submesh, those dominated in time and memory are dropped; an option that never
  // fits allows 0 micro-batches in flight. A time is forward and backward of a micro-batch plus its
  // share of gradient reduction, optimizer and parameter gather; memory is the cost model's.
  // `expired` is polled before each distinct stage content is priced; empty once it returns true.
  std::optional<SlicingProblem> problem(const std::function<bool()>& expired = {});
  // The number of priced stages: (content, place, sharding) combinations.
  std::uint64_t priced() const { return priced_; }

 private:
  struct Way {  // a choice, and the plan of a pipeline of identical stages
    int devices, tag;
    costmodel::ParallelPlan plan;
  };
  enum class Place { front, middle, back, whole };
  using Placed = std::array<StageOption, 3>;  // first, middle, last stage
  void find_ways();
  void add_ways(costmodel::StagePlan sizes, const costmodel::ClusterSpec& submesh);
  // The model's layers in a stage.
  struct Layers {
    int first, count;
  };
  Layers layers_of_range(int first, int end) const;
  class Classes;
  std::vector<StageOption> alone(const Layers& layers);
  std::array<std::vector<StageOption>, 3> placed(const Layers& layers);
  Placed placed(const Way& way, const Layers& layers);
  StageOption option(const Way& way, const costmodel::PlanCost& cost, std::size_t rank) const;
  int alike(const Way& way) const;
  using Content = std::vector<costmodel::LayerMix>;  // by offered recomputation
  costmodel::LayerMix mix_of(const Layers& layers, const costmodel::Recompute& asked) const;
  Content content(const Layers& layers) const;

  const costmodel::Scenario* s_;
  int group_;
  StageTerms terms_;
  std::vector<StageChoice>* choices_;
  costmodel::Evaluator evaluator_;
  std::int64_t micro_batches_;
  costmodel::Bytes limit_;
  std::vector<Way> ways_;
  std::uint64_t priced_ = 0;
};

}  // namespace planner
