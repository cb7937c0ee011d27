#include "planner/search/layout.hpp"

#include <algorithm>
#include <utility>

#include "costmodel/base/error.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/estimate/iteration_end.hpp"
#include "planner/solvers/cut_list.hpp"

namespace planner {

using namespace costmodel;

std::vector<int> balanced_layout(std::int64_t layers, int stages) {
  const std::int64_t counted = layers + 2;
  std::vector<int> layout;
  for (int k = 0; k < stages; ++k)
    layout.push_back(static_cast<int>(counted / stages + (k < counted % stages ? 1 : 0)));
  for (const std::size_t end : {std::size_t{0}, layout.size() - 1}) {
    auto from = layout.begin() + static_cast<std::ptrdiff_t>(end);
    if (*from == 0) from = std::ranges::max_element(layout);
    --*from;
  }
  return layout;
}

namespace {

// Of a sender. Where boundaries differ, those of the layout are not known: none is counted.
Seconds waiting(const PipelineTimes& times) {
  return times.blocking && times.forward_transfer.empty() ? times.transfer : Seconds(0);
}

}  // namespace

LayoutStages::LayoutStages(const ParallelPlan& plan, Bytes limit, Evaluator& evaluator)
    : plan_(plan),
      recompute_(recompute_as_run(plan.recompute, evaluator.training().stack.memory)),
      limit_(limit),
      evaluator_(&evaluator) {}

std::uint64_t LayoutStages::spent() { return std::exchange(spent_, 0); }

const CutStage* LayoutStages::stage(int first, int end) {
  const auto& model = evaluator_->model();
  const bool front = first == 0, back = end == static_cast<int>(model.layers) + 2;
  if (front && back) return nullptr;
  const int from = std::max(first - 1, 0);
  const int layers = std::min(end - 1, static_cast<int>(model.layers)) - from;
  return &(*places(from, layers))[front ? 0 : back ? 2 : 1];
}

// Layers that are all alike are known by their number.
const LayoutStages::Places* LayoutStages::places(int from, int layers) {
  const bool mixed = evaluator_->model().mixes_layers();
  const std::size_t row = mixed ? at(from) : 0;
  if (known_.size() <= row) known_.resize(row + 1);
  if (known_[row].size() <= at(layers)) known_[row].resize(at(layers) + 1);
  const Places*& known = known_[row][at(layers)];
  if (known != nullptr) return known;
  const LayerMix mix = layer_mix(evaluator_->model(), from, layers, recompute_);
  const auto [place, is_new] = priced_.try_emplace(mix);
  if (is_new) place->second = priced(mix);
  return known = &place->second;
}

// In a pipeline of stages that all hold this.
LayoutStages::Places LayoutStages::priced(const LayerMix& content) {
  spent_ += effort_of_pricing * static_cast<std::uint64_t>(plan_.pp);
  const PlanCost& cost =
      evaluator_->cost(plan_, std::vector(static_cast<std::size_t>(plan_.pp), content));
  return {stage(cost, 0, 0), stage(cost, 1, plan_.pp - 2), stage(cost, plan_.pp - 1, plan_.pp - 1)};
}

// The stage of one of the ranks from .. to.
CutStage LayoutStages::stage(const PlanCost& cost, int from, int to) const {
  const auto fits = [&](int rank) { return cost.ranks[at(rank)].memory.total() <= limit_; };
  int rank = to;  // the first at which it fits, from the last on: there the least is in flight
  while (rank >= from && fits(rank)) --rank;
  const Seconds wait = waiting(cost.times);
  // Which ranks sum a token table depends, with two stacks, on where the decoder starts: none is
  // counted.
  const Seconds tables = evaluator_->model().encoder_decoder() ? Seconds(0) : cost.tables.time;
  constexpr int any = std::numeric_limits<int>::max();
  CutStage stage;
  stage.forward = (cost.times.forward[at(from)] + (to + 1 < plan_.pp ? wait : Seconds(0))).value;
  stage.backward = (cost.times.backward[at(from)] + (from > 0 ? wait : Seconds(0))).value;
  stage.most_in_flight = rank < from ? any : rank == to ? 0 : plan_.pp - 1 - rank;
  stage.after = (own_reduction(plan_, evaluator_->training(), cost.ranks, 0) + tables).value;
  return stage;
}

namespace {

// What all layouts pay beside pipeline and gradients: the busiest rank's optimizer takes at least
// the mean, which depends on no layout because its time is linear in parameters; measured tables
// need not be. With two stacks a layout has the tables once more where the decoder starts on a rank
// of its own, and once less where it does not.
Seconds least_optimizer(const PlanCost& cost, const ParallelPlan& plan,
                        const Evaluator& evaluator) {
  if (!evaluator.cluster().device.measured.empty()) return Seconds(0);
  Seconds sum;
  double parameters = 0;
  for (const auto& rank : cost.ranks) {
    sum += rank.after.optimizer;
    parameters += rank.weights.all;
  }
  const auto& model = evaluator.model();
  const double again = model.encoder_decoder() ? shared_tables(model, plan.tp) / parameters : 0;
  constexpr double rounded = 1 - rounding;
  return sum / static_cast<double>(cost.ranks.size()) * rounded * std::max(0.0, 1 - again);
}

CutProblem problem_of(LayoutStages& stages) {
  const ParallelPlan& plan = stages.plan();
  SHARDPLAN_CHECK(plan.pp > 1 && plan.vpp == 1);
  CutProblem problem;
  problem.layers = static_cast<int>(stages.evaluator().model().layers) + 2;
  problem.stages = plan.pp;
  problem.micro_batches = plan.micro_batches(stages.evaluator().training().global_batch);
  problem.stage = [&stages](int first, int end) { return stages.stage(first, end); };
  return problem;
}

// The layers of stages that end there, embedding and loss not among them.
std::vector<int> layers_of(const std::vector<int>& ends) {
  std::vector<int> layers;
  int first = 0;
  for (const int end : ends) layers.push_back(end - std::exchange(first, end));
  if (layers.empty()) return layers;
  --layers.front();
  --layers.back();
  return layers;
}

}  // namespace

bool some_layout_fits(LayoutStages& stages) { return some_cut_fits(problem_of(stages)); }

namespace {

// The cut of a plan's layers within so long an iteration, and what this has beside the pipeline.
struct TimedCut {
  CutProblem problem;
  Seconds beside;
  double factor;
};

TimedCut timed_cut(LayoutStages& stages, Seconds longest, const Spend& spend = {}) {
  const ParallelPlan& plan = stages.plan();
  Evaluator& evaluator = stages.evaluator();
  const EndTerms terms = end_terms(plan, evaluator.workload());
  const PlanCost& even = evaluator.cost(plan);
  const Seconds beside = least_optimizer(even, plan, evaluator) + terms.host;
  const bool waits = even.times.blocking || !even.times.forward_transfer.empty();
  TimedCut cut{problem_of(stages), beside, terms.factor()};
  cut.problem.transfer = waits ? 0 : even.times.transfer.value;
  cut.problem.limit = (longest / terms.factor() - beside).value;
  if (spend) {
    cut.problem.expired = [&](std::uint64_t looked_at) {
      return spend(looked_at + stages.spent());
    };
  }
  return cut;
}

}  // namespace

LayoutCut cut_layout(LayoutStages& stages, Seconds longest, const Spend& spend) {
  auto [problem, beside, factor] = timed_cut(stages, longest, spend);
  problem.some_is_quick = stages.evaluator().cost(stages.plan()).bound.iteration <= longest;
  const PipelineCut cut = best_cut(problem);
  return {layers_of(cut.ends), layers_of(cut.least_work), (Seconds(cut.bound) + beside) * factor,
          cut.too_slow, cut.expired};
}

std::vector<int> cut_by_time(LayoutStages& stages, const Spend& spend) {
  constexpr double slack = 1 + 1e-9;  // the best is no slower than the plan's own layout
  const Seconds known = stages.evaluator().cost(stages.plan()).bound.iteration * slack;
  CutProblem problem = timed_cut(stages, known, spend).problem;
  problem.whatever_fits = true;
  return layers_of(best_cut(problem).ends);
}

std::optional<std::vector<std::vector<int>>> layouts_within(LayoutStages& stages, Seconds longest,
                                                            std::size_t most) {
  auto cuts = cuts_within(timed_cut(stages, longest).problem, most);
  if (!cuts) return {};
  for (std::vector<int>& cut : *cuts) cut = layers_of(cut);
  return cuts;
}

std::vector<int> dealt_to_chunks(const std::vector<int>& rank_layers, int chunks) {
  std::vector<int> own = rank_layers;  // embedding and loss count as layers
  ++own.front();
  ++own.back();
  std::vector<int> layout;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    for (const int layers : own)
      layout.push_back(layers / chunks + (chunk < layers % chunks ? 1 : 0));
  }
  --layout.front();
  --layout.back();
  const bool all = layout.front() >= 0 && layout.back() >= 0 &&
                   std::all_of(layout.begin() + 1, layout.end() - 1, [](int n) { return n > 0; });
  return all ? layout : std::vector<int>();
}

namespace {

class Improver {
 public:
  Improver(ParallelPlan plan, Bytes limit, Evaluator& evaluator)
      : plan_(std::move(plan)), limit_(limit), evaluator_(&evaluator) {}

  // Empty where it does not fit, or no iteration can be shorter than `than`.
  std::optional<Layout> priced(const std::vector<int>& layers, Seconds than) {
    plan_.stage_layers = layers;
    const PlanCost& cost = evaluator_->cost(plan_);
    spent_ += effort_of_pricing * layers.size();
    if (!better(cost.bound.iteration, than)) return {};
    const Bytes peak = evaluator_->cost_within(plan_, limit_).peak;
    if (peak > limit_) return {};
    spent_ += static_cast<std::uint64_t>(evaluator_->simulated_actions(plan_));
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

  // The effort since the last call.
  std::uint64_t spent() { return std::exchange(spent_, 0); }

  // The best layout one move away; empty when none is better.
  std::optional<Layout> step(const Layout& from) {
    const auto times = rank_times(from.stage_layers);
    const auto slow = std::ranges::max_element(times) - times.begin();
    const auto quick = std::ranges::min_element(times) - times.begin();
    const int stages = plan_.virtual_stages();
    constexpr int few_stages = 32;
    const auto marked = [&](int stage) {
      const int rank = rank_of(plan_.schedule, plan_.pp, stage);
      return rank == slow || rank == quick || stage == 0 || stage == stages - 1;
    };
    const auto fewest = [&](int stage) { return stage == 0 || stage == stages - 1 ? 0 : 1; };
    std::optional<Layout> best;
    std::vector<int> layers = from.stage_layers;
    for (int a = 0; a < stages; ++a) {
      for (int b = 0; b < stages; ++b) {
        auto& giver = layers[static_cast<std::size_t>(a)];
        auto& taker = layers[static_cast<std::size_t>(b)];
        const bool tried = stages <= few_stages ? marked(a) || marked(b) : marked(a) && marked(b);
        if (a == b || giver <= fewest(a) || !tried) continue;
        --giver;
        ++taker;
        const Seconds least = (best ? *best : from).iteration;
        if (auto found = priced(layers, least); found && better(found->iteration, least))
          best = std::move(found);
        ++giver;
        --taker;
      }
    }
    return best;
  }

 private:
  // Better by more than rounding.
  static bool better(Seconds a, Seconds b) { return a.value < b.value * (1 - 1e-9); }

  ParallelPlan plan_;
  Bytes limit_;
  Evaluator* evaluator_;
  std::uint64_t spent_ = 0;
};

}  // namespace

Layout improved_layout(ParallelPlan plan, const std::vector<int>& start, Bytes limit,
                       Evaluator& evaluator, const Spend& spend) {
  Improver improver(std::move(plan), limit, evaluator);
  Layout best = *improver.priced(start, Seconds(infinity));
  for (;;) {
    const auto next = improver.step(best);
    if ((spend && spend(improver.spent())) || !next) break;
    best = *next;
  }
  return best;
}

}  // namespace planner
