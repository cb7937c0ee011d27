#include "planner/search/stage_options.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "costmodel/estimate/layer_mix.hpp"
#include "costmodel/plan/stage_plan.hpp"
#include "planner/search/search_space.hpp"

namespace planner {

using costmodel::Bytes;
using costmodel::LayerMix;
using costmodel::ParallelPlan;
using costmodel::PlanCost;
using costmodel::Recomputation;
using costmodel::Recompute;
using costmodel::Scenario;
using costmodel::Seconds;
using costmodel::StagePlan;

std::vector<Recompute> recompute_offered(const Scenario& s) {
  if (s.plan.recompute) return {*s.plan.recompute};
  std::vector<Recompute> all;
  const auto& listed = s.search.recompute;
  for (const auto kind : {Recomputation::none, Recomputation::selective, Recomputation::full}) {
    const bool offered =
        kind != Recomputation::selective || s.training.stack.offers.selective_recompute;
    if (offered &&
        (listed.empty() || std::find(listed.begin(), listed.end(), kind) != listed.end()))
      all.push_back({kind, 0});
  }
  return all;
}

std::vector<int> zero_offered(const Scenario& s, std::int64_t replicas) {
  if (s.plan.zero) return {*s.plan.zero};
  std::vector<int> all;
  for (int z = 0; z <= (replicas > 1 ? s.training.stack.offers.max_zero : 0); ++z) {
    const auto& listed = s.search.zero;
    if (listed.empty() || std::find(listed.begin(), listed.end(), z) != listed.end())
      all.push_back(z);
  }
  return all;
}

std::vector<StagePlan> sizes_offered(const Scenario& s, int devices, int tp,
                                     std::int64_t sequences) {
  std::vector<StagePlan> all;
  const int rest = devices / tp;
  for (const std::int64_t cp : context_sizes_offered(s, rest)) {
    if (rest % cp != 0) continue;
    StagePlan stage;
    stage.tp = tp;
    stage.cp = static_cast<int>(cp);
    stage.dp = rest / stage.cp;
    const std::int64_t most = s.search.max_micro_batch;
    if (sequences % stage.dp != 0 || (s.plan.dp && *s.plan.dp != stage.dp) ||
        (most > 0 && sequences / stage.dp > most))
      continue;
    for (const auto exchange : exchanges_offered(s, cp)) {
      stage.cp_comm = exchange;
      for (const ExpertSizes& experts : expert_sizes_offered(s, tp)) {
        stage.ep = experts.ep;
        stage.etp = experts.etp;
        all.push_back(stage);
      }
    }
  }
  return all;
}

StageOptions::StageOptions(const Scenario& scenario, int group, const StageTerms& terms,
                           std::vector<StageChoice>& choices)
    : s_(&scenario),
      group_(group),
      terms_(terms),
      choices_(&choices),
      evaluator_(scenario.model, group_of(scenario.cluster, group), scenario.training),
      micro_batches_(scenario.training.global_batch / terms.sequences),
      limit_(evaluator_.cluster().device.memory * (1 - scenario.search.memory_margin)) {
  find_ways();
}

// A tensor group stays within a node.
void StageOptions::find_ways() {
  const auto& devices = evaluator_.cluster();
  const auto per_node = static_cast<int>(devices.devices_per_node);
  const int most = s_->search.max_tp > 0 ? s_->search.max_tp : per_node;
  for (const int n : submeshes(static_cast<int>(devices.devices), per_node)) {
    const costmodel::ClusterSpec submesh = resized(devices, n);
    for (int tp = 1; tp <= std::min({n, per_node, most}); ++tp) {
      if (n % tp != 0 || (s_->plan.tp && *s_->plan.tp != tp)) continue;
      for (const StagePlan& sizes : sizes_offered(*s_, n, tp, terms_.sequences))
        add_ways(sizes, submesh);
    }
  }
}

void StageOptions::add_ways(StagePlan stage, const costmodel::ClusterSpec& submesh) {
  stage.group = group_name(s_->cluster, group_);
  ParallelPlan plan;
  plan.dp = stage.dp;
  plan.micro_batch = terms_.sequences / stage.dp;
  plan.sequence_parallel = terms_.sequence_parallel;
  for (const Recompute& recompute : recompute_offered(*s_)) {
    for (const int zero : zero_offered(*s_, std::int64_t{stage.dp} * stage.cp)) {
      stage.recompute = recompute;
      stage.zero = zero;
      plan.stages = {stage};
      const ParallelPlan own = stage_plan(plan, 0);
      if (!is_valid(own, s_->model, submesh, s_->training)) continue;
      const auto tag = static_cast<int>(choices_->size());
      choices_->push_back({group_, stage});
      ways_.push_back({static_cast<int>(submesh.devices), tag, own});
    }
  }
}

// The number of stages of this size that fit on the devices.
int StageOptions::alike(const Way& way) const {
  return static_cast<int>(evaluator_.cluster().devices / way.devices);
}

StageOptions::Layers StageOptions::layers_of_range(int first, int end) const {
  const int from = std::max(first - 1, 0);
  return {from, std::min(end - 1, static_cast<int>(s_->model.layers)) - from};
}

LayerMix StageOptions::mix_of(const Layers& layers, const Recompute& asked) const {
  const Recompute recompute = recompute_as_run(asked, s_->training.stack.memory);
  return layer_mix(s_->model, layers.first, layers.count, recompute);
}

// Ranges with equal content have equal cost under every sharding.
StageOptions::Content StageOptions::content(const Layers& layers) const {
  Content content;
  for (const Recompute& recompute : recompute_offered(*s_))
    content.push_back(mix_of(layers, recompute));
  return content;
}

// Memory is linear in the micro-batches in flight. The last stage has one in flight, so it either
// fits or not; so does a stage that is the entire pipeline.
StageOption StageOptions::option(const Way& way, const PlanCost& cost, std::size_t rank) const {
  StageOption option{.devices = way.devices, .tag = way.tag};
  const Seconds after = cost.ranks[rank].after.gradient_exposed + cost.ranks[rank].after.optimizer +
                        cost.ranks[rank].after.gather_exposed;
  option.seconds = (cost.times.forward[rank] + cost.times.backward[rank] +
                    after / static_cast<double>(micro_batches_))
                       .value;
  const costmodel::StageMemory& memory = cost.ranks[rank].memory;
  const Bytes left = limit_ - memory.total();
  if (rank + 1 == cost.ranks.size() || memory.each.value <= 0) {
    option.most_in_flight = left.value >= 0 ? any_in_flight : 0;
  } else {
    const double count = std::floor(memory.in_flight_micro_batches + left / memory.each);
    option.most_in_flight = static_cast<int>(std::clamp(count, 0.0, 1e6));
  }
  return option;
}

// Priced in a pipeline of identical stages that uses all devices; its first stages and its last one
// suffice.
StageOptions::Placed StageOptions::placed(const Way& way, const Layers& layers) {
  constexpr std::size_t ends = 2, all = 3;  // stages
  const std::int64_t most = std::min<std::int64_t>(s_->model.layers + 2, micro_batches_ - 1);
  const LayerMix mix = mix_of(layers, way.plan.recompute);
  ParallelPlan plan = way.plan;
  const auto cost = [&](std::size_t stages) -> const PlanCost& {
    const auto least = static_cast<std::int64_t>(stages);
    plan.pp = static_cast<int>(
        std::clamp<std::int64_t>(alike(way), least, std::max<std::int64_t>(least, most)));
    return evaluator_.cost_of_ends(plan, std::vector<LayerMix>(stages, mix));
  };
  Placed found;
  const PlanCost& three = cost(all);
  for (std::size_t place = 0; place < all; ++place) found[place] = option(way, three, place);
  if (plan.pp > static_cast<int>(all)) return found;
  const PlanCost& two = cost(ends);
  if (plan.pp == static_cast<int>(ends)) {
    found.front() = option(way, two, 0);
    found.back() = option(way, two, 1);
  }
  return found;
}

namespace {

// Keeps the Pareto-optimal options for each submesh, in time and memory.
std::vector<StageOption> unbeaten(std::vector<StageOption> all) {
  std::stable_sort(all.begin(), all.end(), [](const StageOption& a, const StageOption& b) {
    return a.devices != b.devices ? a.devices < b.devices : a.seconds < b.seconds;
  });
  std::vector<StageOption> kept;
  for (const StageOption& o : all) {
    const bool beaten = !kept.empty() && kept.back().devices == o.devices &&
                        kept.back().most_in_flight >= o.most_in_flight;
    if (!beaten) kept.push_back(o);
  }
  return kept;
}

}  // namespace

// A stage that is the entire pipeline.
std::vector<StageOption> StageOptions::alone(const Layers& layers) {
  std::vector<StageOption> all;
  for (const Way& way : ways_) {
    const LayerMix mix = mix_of(layers, way.plan.recompute);
    all.push_back(option(way, evaluator_.cost(way.plan, {mix}), 0));
  }
  priced_ += ways_.size();
  return unbeaten(std::move(all));
}

std::array<std::vector<StageOption>, 3> StageOptions::placed(const Layers& layers) {
  std::array<std::vector<StageOption>, 3> all;
  for (const Way& way : ways_) {
    const Placed found = placed(way, layers);
    for (std::size_t place = 0; place < found.size(); ++place) all[place].push_back(found[place]);
  }
  priced_ += ways_.size() * all.size();
  for (auto& list : all) list = unbeaten(std::move(list));
  return all;
}

// The class of each content at each place; -1: not priced.
class StageOptions::Classes {
 public:
  explicit Classes(const StageOptions& options) : options_(&options) {}

  std::array<std::int32_t, 4>& of(const Layers& layers) {
    if (options_->s_->model.mixes_layers())
      return mixed_.try_emplace(options_->content(layers), none).first->second;
    const auto count = static_cast<std::size_t>(layers.count);
    if (alike_.size() <= count) alike_.resize(count + 1, none);
    return alike_[count];
  }

 private:
  static constexpr std::array<std::int32_t, 4> none{-1, -1, -1, -1};
  const StageOptions* options_;
  std::vector<std::array<std::int32_t, 4>> alike_;  // by how many layers there are
  std::map<Content, std::array<std::int32_t, 4>> mixed_;
};

std::optional<SlicingProblem> StageOptions::problem(const std::function<bool()>& expired) {
  SlicingProblem problem;
  problem.layers = static_cast<int>(s_->model.layers) + 2;
  problem.devices = static_cast<int>(evaluator_.cluster().devices);
  problem.micro_batches = micro_batches_;
  problem.clear_ranges();
  Classes classes(*this);
  const auto add = [&](std::int32_t& to, std::vector<StageOption> list) {
    to = static_cast<std::int32_t>(problem.options.size());
    problem.options.push_back(std::move(list));
  };
  for (int first = 0; first < problem.layers; ++first) {
    for (int end = first + 1; end <= problem.layers; ++end) {
      const bool front = first == 0, back = end == problem.layers;
      const Place place = front && back ? Place::whole
                          : front       ? Place::front
                          : back        ? Place::back
                                        : Place::middle;
      const Layers layers = layers_of_range(first, end);
      auto& known = classes.of(layers);
      std::int32_t& own = known[static_cast<std::size_t>(place)];
      if (own < 0) {
        if (expired && expired()) return {};
        if (place == Place::whole) {
          add(own, alone(layers));
        } else {
          auto all = placed(layers);
          for (std::size_t at = 0; at < all.size(); ++at) add(known[at], std::move(all[at]));
        }
      }
      problem.range_class[problem.at(first, end)] = own;
    }
  }
  return problem;
}

}  // namespace planner
