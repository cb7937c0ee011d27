#include "planner/search/layout.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "costmodel/base/error.hpp"
#include "costmodel/estimate/layer_mix.hpp"

namespace planner {

using costmodel::Bytes;
using costmodel::Evaluator;
using costmodel::LayerMix;
using costmodel::ParallelPlan;
using costmodel::PlanCost;
using costmodel::Seconds;

std::vector<int> balanced_layout(std::int64_t layers, int stages) {
  const std::int64_t counted = layers + 2;
  std::vector<int> layout;
  for (int k = 0; k < stages; ++k)
    layout.push_back(static_cast<int>(counted / stages + (k < counted % stages ? 1 : 0)));
  for (const std::size_t end : {std::size_t{0}, layout.size() - 1}) {
    auto from = layout.begin() + static_cast<std::ptrdiff_t>(end);
    if (*from == 0) from = std::max_element(layout.begin(), layout.end());
    --*from;
  }
  return layout;
}

namespace {

enum class Place { front, middle, back };

class LayoutTable {
 public:
  LayoutTable(const ParallelPlan& plan, Bytes limit, Evaluator& evaluator)
      : plan_(plan),
        recompute_(recompute_as_run(plan.recompute, evaluator.training().stack)),
        limit_(limit),
        evaluator_(&evaluator) {}

  // The layer mix of a range without embedding and loss. Layer 0 is the embedding, the last one the
  // loss.
  LayerMix content(int first, int end) const {
    const auto& model = evaluator_->model();
    const int from = std::max(first - 1, 0);
    const int layers = std::min(end - 1, static_cast<int>(model.layers)) - from;
    return layer_mix(model, from, layers, recompute_);
  }

  // Priced once per content, with all stages holding it: the first stage gives the option at the
  // front, the last one that at the back.
  const std::array<StageOption, 3>& options(const LayerMix& content) {
    const auto [at, is_new] = known_.try_emplace(content);
    if (!is_new) return at->second;
    const PlanCost& cost =
        evaluator_->cost(plan_, std::vector(static_cast<std::size_t>(plan_.pp), content));
    at->second = {option(cost, 0, 0), option(cost, 1, plan_.pp - 2),
                  option(cost, plan_.pp - 1, plan_.pp - 1)};
    return at->second;
  }

 private:
  // The option of a stage on one of the ranks from .. to.
  StageOption option(const PlanCost& cost, int from, int to) const {
    const auto fits = [&](int rank) {
      return cost.ranks[static_cast<std::size_t>(rank)].memory.total() <= limit_;
    };
    int rank = to;  // the first at which it fits, from the last on: there the least is in flight
    while (rank >= from && fits(rank)) --rank;
    StageOption option;
    const auto k = static_cast<std::size_t>(from);
    option.seconds = (cost.times.forward[k] + cost.times.backward[k]).value;
    option.most_in_flight = rank < from ? any_in_flight : rank == to ? 0 : plan_.pp - 1 - rank;
    return option;
  }

  ParallelPlan plan_;
  costmodel::Recompute recompute_;
  Bytes limit_;
  Evaluator* evaluator_;
  std::map<LayerMix, std::array<StageOption, 3>> known_;
};

}  // namespace

SlicingProblem layout_problem(const ParallelPlan& plan, Bytes limit, Evaluator& evaluator,
                              Seconds longest) {
  SHARDPLAN_CHECK(plan.pp > 1 && plan.vpp == 1);
  LayoutTable table(plan, limit, evaluator);
  SlicingProblem problem;
  problem.layers = static_cast<int>(evaluator.model().layers) + 2;
  problem.devices = plan.pp;
  problem.micro_batches = plan.micro_batches(evaluator.training().global_batch);
  problem.clear_ranges();
  std::map<std::pair<LayerMix, Place>, std::int32_t> classes;
  for (int first = 0; first < problem.layers; ++first) {
    for (int end = first + 1; end <= problem.layers; ++end) {
      const bool front = first == 0, back = end == problem.layers;
      if (front && back) continue;
      const Place place = front ? Place::front : back ? Place::back : Place::middle;
      const LayerMix content = table.content(first, end);
      const StageOption& option = table.options(content)[static_cast<std::size_t>(place)];
      if (option.seconds > longest.value) break;  // and so does all that starts there
      const auto [at, is_new] = classes.emplace(std::pair(content, place),
                                                static_cast<std::int32_t>(problem.options.size()));
      if (is_new) problem.options.push_back({option});
      problem.range_class[problem.at(first, end)] = at->second;
    }
  }
  return problem;
}

std::vector<int> layers_of(const Slicing& slicing) {
  std::vector<int> layers;
  for (const SlicedStage& stage : slicing.stages) layers.push_back(stage.end - stage.first);
  --layers.front();
  --layers.back();
  return layers;
}

namespace {

class Improver {
 public:
  Improver(ParallelPlan plan, Bytes limit, Evaluator& evaluator)
      : plan_(std::move(plan)), limit_(limit), evaluator_(&evaluator) {}

  std::optional<Layout> priced(const std::vector<int>& layers) {
    plan_.stage_layers = layers;
    const Bytes peak = evaluator_->cost(plan_).peak;
    if (peak > limit_) return {};
    return Layout{layers, evaluator_->iteration_time(plan_), peak};
  }

  // Time per micro-batch of each rank, for the layout priced last.
  std::vector<Seconds> rank_times(const std::vector<int>& layers) {
    plan_.stage_layers = layers;
    const PlanCost& cost = evaluator_->cost(plan_);
    std::vector<Seconds> times(static_cast<std::size_t>(plan_.pp));
    for (std::size_t k = 0; k < layers.size(); ++k) {
      const auto rank = rank_of(plan_.schedule, plan_.pp, static_cast<int>(k));
      times[static_cast<std::size_t>(rank)] += cost.times.forward[k] + cost.times.backward[k];
    }
    return times;
  }

  // The best layout one move away; empty when none is better.
  std::optional<Layout> step(const Layout& from) {
    const auto times = rank_times(from.stage_layers);
    const auto slow = std::max_element(times.begin(), times.end()) - times.begin();
    const auto quick = std::min_element(times.begin(), times.end()) - times.begin();
    const int stages = plan_.virtual_stages();
    constexpr int few_stages = 32;
    const auto marked = [&](int stage) {
      const int rank = rank_of(plan_.schedule, plan_.pp, stage);
      return rank == slow || rank == quick || stage == 0 || stage == stages - 1;
    };
    const auto least = [&](int stage) { return stage == 0 || stage == stages - 1 ? 0 : 1; };
    std::optional<Layout> best;
    std::vector<int> layers = from.stage_layers;
    for (int a = 0; a < stages; ++a) {
      for (int b = 0; b < stages; ++b) {
        auto& giver = layers[static_cast<std::size_t>(a)];
        auto& taker = layers[static_cast<std::size_t>(b)];
        const bool tried = stages <= few_stages ? marked(a) || marked(b) : marked(a) && marked(b);
        if (a == b || giver <= least(a) || !tried) continue;
        --giver;
        ++taker;
        if (auto found = priced(layers); found && better(*found, best ? *best : from))
          best = std::move(found);
        ++giver;
        --taker;
      }
    }
    return best;
  }

 private:
  // Better by more than rounding.
  static bool better(const Layout& a, const Layout& b) {
    return a.iteration.value < b.iteration.value * (1 - 1e-9);
  }

  ParallelPlan plan_;
  Bytes limit_;
  Evaluator* evaluator_;
};

}  // namespace

Layout improved_layout(ParallelPlan plan, const std::vector<int>& start, Bytes limit,
                       Evaluator& evaluator, const std::function<bool()>& expired) {
  Improver improver(std::move(plan), limit, evaluator);
  Layout best = *improver.priced(start);
  while (!expired || !expired()) {
    const auto next = improver.step(best);
    if (!next) break;
    best = *next;
  }
  return best;
}

}  // namespace planner
