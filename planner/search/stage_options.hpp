// The options of a stage on the submeshes of one group of devices, for stage slicing: Alpa's inner
// problem (Zheng et al. 2022, arXiv:2201.12023, section 5.2) restricted to what a plan can express:
// tensor, context, expert and data parallel size, recomputation and ZeRO stage.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/search/stage_pace.hpp"
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

// The most stages of a pipeline.
int most_stages(const costmodel::Scenario& scenario);

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

  // The slicing problem of this group: the model's layers, embedding first and loss last. Times and
  // memory are the cost model's for the shortest pipeline in which a stage can stand there, but
  // `seconds` for the longest, with a micro-batch's share of gradient reduction, optimizer and
  // parameter gather. Among the options for one submesh, those dominated in times and memory are
  // dropped, as are those that never fit beside one that does. Where a stage that recomputes all
  // its layers has room for more than one that keeps everything, every number of recomputed layers
  // between that frees room for another micro-batch is an option. `expired` is polled before each
  // distinct stage content is priced; empty once it returns true.
  std::optional<SlicingProblem> problem(const std::function<bool()>& expired = {});
  // The number of priced stages: (content, place, sharding) combinations.
  std::uint64_t priced() const { return priced_; }

 private:
  struct Way {  // a choice, and the plan of a pipeline of identical stages
    int devices, tag;
    costmodel::ParallelPlan plan;
    std::size_t kept = none;       // the way that differs in recomputing nothing
    std::map<int, int> tags = {};  // by number of recomputed layers
    static constexpr std::size_t none = static_cast<std::size_t>(-1);
  };
  enum class Place { front, middle, back, whole };
  static constexpr std::size_t places = 4;
  struct Priced {
    StageOption option;
    costmodel::Bytes left, each;  // memory beside `held` micro-batches in flight, and of one more
    double held = 0;
  };
  using Placed = std::array<Priced, places>;
  using Lists = std::array<std::vector<StageOption>, places>;
  void find_ways();
  void add_ways(costmodel::StagePlan sizes, const costmodel::ClusterSpec& submesh);
  // The model's layers in a stage.
  struct Layers {
    int first, count;
    bool at_end;  // of the pipeline
  };
  Layers layers_of_range(int first, int end) const;
  class Classes;
  Lists options_of(const Layers& layers);
  Placed placed(const Way& way, const Layers& layers, const costmodel::Recompute& recompute);
  class Partly;
  void recompute_some(std::size_t way, const Layers& layers, const std::vector<Placed>& all,
                      const Lists& known, Lists& lists);
  Priced option(const Way& way, const costmodel::PlanCost& cost, std::size_t rank) const;
  StageOption in_longest(const StageOption& option) const;
  bool beats(const StageOption& a, const StageOption& b) const;
  std::vector<StageOption> unbeaten(std::vector<StageOption> options) const;
  int most_in_flight(const Priced& priced, bool alone) const;
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
  int most_stages_;
  std::uint64_t priced_ = 0;
};

}  // namespace planner
