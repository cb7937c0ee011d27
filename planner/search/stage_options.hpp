// The ways to run a stage of some layers on submeshes of one group of devices, as options of stage
// slicing: Alpa's inner problem (Zheng et al. 2022, arXiv:2201.12023, section 5.2) with the choices
// a plan can say: tensor, context, expert and data parallel size, recomputation and ZeRO stage.
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

// What an option's tag stands for.
struct StageChoice {
  int group = 0;
  costmodel::StagePlan stage;
};

// What all stages of one search share.
struct StageTerms {
  std::int64_t sequences = 1;  // of a micro-batch, over all replicas
  bool sequence_parallel = false;
};

// What the scenario and its stack leave open of a stage's recomputation and, for so many replicas,
// of its ZeRO stage.
std::vector<costmodel::Recompute> recompute_offered(const costmodel::Scenario& scenario);
std::vector<int> zero_offered(const costmodel::Scenario& scenario, std::int64_t replicas);

// What they leave open of the sizes, and of the exchange of keys and values, of a stage on so many
// devices that works on so many sequences at a time, its tensor groups tp wide: a divisor of the
// devices.
std::vector<costmodel::StagePlan> sizes_offered(const costmodel::Scenario& scenario, int devices,
                                                int tp, std::int64_t sequences);

class StageOptions {
 public:
  StageOptions(const costmodel::Scenario& scenario, int group, const StageTerms& terms,
               std::vector<StageChoice>& choices);

  // The slicing problem of this group: the model's layers, embedding first and loss last. Of the
  // options for one submesh those are kept that nothing quicker beats in memory; one that never
  // fits keeps none in flight. Times are a micro-batch's forward and backward and its share of what
  // follows the pipeline, gradient reduction, optimizer and parameter gather; memory is the cost
  // model's. `expired` is asked before each content of a stage is priced; nothing once it says
  // yes.
  std::optional<SlicingProblem> problem(const std::function<bool()>& expired = {});
  // Stages that were priced: so many contents, places and ways of them.
  std::uint64_t priced() const { return priced_; }

 private:
  struct Way {  // a choice, and the plan of a pipeline of stages like it
    int devices, tag;
    costmodel::ParallelPlan plan;
  };
  enum class Place { front, middle, back, whole };
  using Placed = std::array<StageOption, 3>;  // in front, in the middle, at the back
  void find_ways();
  void add_ways(costmodel::StagePlan sizes, const costmodel::ClusterSpec& submesh);
  // A stage's layers of the model.
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
  using Content = std::vector<costmodel::LayerMix>;  // under each recomputation offered
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
