#include "planner/search/stage_options.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "costmodel/estimate/layer_mix.hpp"
#include "costmodel/plan/stage_plan.hpp"
#include "planner/search/search_space.hpp"
#include "planner/solvers/tolerances.hpp"

namespace planner {

using namespace costmodel;

std::vector<Recompute> recompute_offered(const Scenario& s) {
  if (s.plan.recompute) return {*s.plan.recompute};
  std::vector<Recompute> all;
  const auto& listed = s.search.recompute;
  for (const auto kind : {Recomputation::none, Recomputation::selective, Recomputation::full}) {
    const bool offered =
        kind != Recomputation::selective || s.training.stack.offers.selective_recompute;
    if (offered && (listed.empty() || std::ranges::find(listed, kind) != listed.end()))
      all.push_back({kind, 0});
  }
  return all;
}

std::vector<int> zero_offered(const Scenario& s, std::int64_t replicas) {
  if (s.plan.zero) return {*s.plan.zero};
  std::vector<int> all;
  for (int z = 0; z <= (replicas > 1 ? s.training.stack.offers.max_zero : 0); ++z) {
    const auto& listed = s.search.zero;
    if (listed.empty() || std::ranges::find(listed, z) != listed.end()) all.push_back(z);
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

int most_stages(const Scenario& s) {
  const std::int64_t most = std::min(s.model.layers + 2, s.cluster.devices);
  return static_cast<int>(s.search.max_pp > 0 ? std::min<std::int64_t>(most, s.search.max_pp)
                                              : most);
}

StageOptions::StageOptions(const Scenario& scenario, int group, const StageTerms& terms,
                           std::vector<StageChoice>& choices)
    : s_(&scenario),
      group_(group),
      terms_(terms),
      choices_(&choices),
      evaluator_(scenario.model, group_of(scenario.cluster, group), scenario.training),
      micro_batches_(scenario.training.global_batch / terms.sequences),
      limit_(evaluator_.cluster().device.memory * (1 - scenario.search.memory_margin)),
      most_stages_(most_stages(scenario)) {
  find_ways();
}

// A tensor group stays within a node.
void StageOptions::find_ways() {
  const auto& devices = evaluator_.cluster();
  const auto per_node = static_cast<int>(devices.devices_per_node);
  const int most = s_->search.max_tp > 0 ? s_->search.max_tp : per_node;
  for (const int n : submeshes(static_cast<int>(devices.devices), per_node)) {
    const ClusterSpec submesh = resized(devices, n);
    for (int tp = 1; tp <= std::min({n, per_node, most}); ++tp) {
      if (n % tp != 0 || (s_->plan.tp && *s_->plan.tp != tp)) continue;
      for (const StagePlan& sizes : sizes_offered(*s_, n, tp, terms_.sequences))
        add_ways(sizes, submesh);
    }
  }
}

void StageOptions::add_ways(StagePlan stage, const ClusterSpec& submesh) {
  stage.group = group_name(s_->cluster, group_);
  ParallelPlan plan;
  plan.dp = stage.dp;
  plan.micro_batch = terms_.sequences / stage.dp;
  plan.sequence_parallel = terms_.sequence_parallel;
  std::map<int, std::size_t> kept;  // the way that recomputes nothing, by ZeRO stage
  for (const Recompute& recompute : recompute_offered(*s_)) {
    for (const int zero : zero_offered(*s_, std::int64_t{stage.dp} * stage.cp)) {
      stage.recompute = recompute;
      stage.zero = zero;
      plan.stages = {stage};
      const ParallelPlan own = stage_plan(plan, 0);
      if (!is_valid(own, s_->model, submesh, s_->training)) continue;
      const auto tag = static_cast<int>(choices_->size());
      choices_->push_back({group_, stage});
      if (recompute.granularity == Recomputation::none) kept[zero] = ways_.size();
      const auto same = kept.find(zero);
      ways_.push_back({static_cast<int>(submesh.devices), tag, own,
                       same == kept.end() ? Way::none : same->second});
    }
  }
}

StageOptions::Layers StageOptions::layers_of_range(int first, int end) const {
  const int from = std::max(first - 1, 0);
  const auto all = static_cast<int>(s_->model.layers);
  return {from, std::min(end - 1, all) - from, first == 0 || end == all + 2};
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
// fits or not; so does a stage that is the entire pipeline (`alone`). Where an exchange of experts
// runs beside another micro-batch, one more is under way than its turn has.
int StageOptions::most_in_flight(const Priced& priced, bool alone) const {
  if (alone || priced.each.value <= 0) return priced.left.value >= 0 ? any_in_flight : 0;
  const double count = std::floor(priced.held + priced.left / priced.each);
  if (count >= static_cast<double>(micro_batches_)) return any_in_flight;
  const bool more = expert_recipe(*s_).overlap && s_->model.experts > 0;
  return static_cast<int>(std::clamp(count - (more ? 1 : 0), 0.0, 1e6));
}

StageOptions::Priced StageOptions::option(const Way& way, const PlanCost& cost,
                                          std::size_t rank) const {
  const RankRow& row = cost.ranks[rank];
  Priced priced;
  priced.left = limit_ - row.memory.total();
  priced.each = row.memory.each;
  priced.held = row.memory.in_flight_micro_batches;
  StageOption& option = priced.option;
  option.devices = way.devices;
  option.tag = way.tag;
  option.most_in_flight = most_in_flight(priced, rank + 1 == cost.ranks.size());
  option.forward = cost.times.forward[rank].value;
  option.backward = cost.times.backward[rank].value;
  option.stages = static_cast<int>(cost.ranks.size());
  if (option.stages > 1) {  // a whole pipeline is in no longer one
    const StageRow& stage = cost.stages[rank];
    option.computed_forward = stage.forward.compute.value;
    option.computed_backward = (stage.backward.compute + stage.recompute.compute).value;
  }
  option.reduction = own_reduction(way.plan, s_->training, cost.ranks, rank).value;
  option.after = (row.after.optimizer + row.after.gather_exposed).value;
  const StageOption least = in_longest(option);
  option.seconds = least.forward + least.backward +
                   (option.reduction + option.after) / static_cast<double>(micro_batches_);
  return priced;
}

StageOption StageOptions::in_longest(const StageOption& option) const {
  return in_pipeline(option, evaluator_.cluster(), micro_batches_, most_stages_);
}

// Priced in pipelines of identical stages: either at the ends or in between.
StageOptions::Placed StageOptions::placed(const Way& way, const Layers& layers,
                                          const Recompute& recompute) {
  constexpr int ends = 2, all = 3;  // stages
  const LayerMix mix = mix_of(layers, recompute);
  ParallelPlan plan = way.plan;
  plan.recompute = recompute;
  Placed found;
  for (Priced& priced : found) priced.option.most_in_flight = 0;
  const auto place = [&](Place to, const PlanCost& cost, std::size_t rank) {
    found[static_cast<std::size_t>(to)] = option(way, cost, rank);
    ++priced_;
  };
  if (!layers.at_end) {
    plan.pp = all;
    place(Place::middle, evaluator_.cost(plan, std::vector<LayerMix>(all, mix)), 1);
    return found;
  }
  if (layers.count == s_->model.layers) place(Place::whole, evaluator_.cost(plan, {mix}), 0);
  plan.pp = ends;
  const PlanCost& two = evaluator_.cost(plan, std::vector<LayerMix>(ends, mix));
  place(Place::front, two, 0);
  place(Place::back, two, 1);
  return found;
}

// A way whose stages recompute some of their layers, priced on demand.
class StageOptions::Partly {
 public:
  Partly(StageOptions& options, std::size_t way, const Layers& layers)
      : options_(&options), way_(way), layers_(layers) {}

  const Priced& with(int count, std::size_t place) {
    const auto [found, is_new] = known_.try_emplace(count);
    if (is_new) {
      const Way& way = options_->ways_[way_];
      found->second = options_->placed(way, layers_, {Recomputation::full, count});
    }
    return found->second[place];
  }

  // The fewest layers with which so many micro-batches in flight fit; all of them at most. Memory
  // is nearly linear in them, between none of them and all.
  int fewest(int in_flight, std::size_t place, const Priced& none, const Priced& all) {
    const auto lacking = [&](const Priced& p) {
      return (p.each * (in_flight - p.held) - p.left).value;
    };
    const double much = lacking(none), little = lacking(all);
    const double share = much > little ? much / (much - little) : 1;
    int few = 0, enough = layers_.count;
    int next = static_cast<int>(std::ceil(std::clamp(share, 0.0, 1.0) * enough));
    for (int step = 1; few + 1 < enough; step *= 2) {
      next = std::clamp(next, few + 1, enough - 1);
      const bool fits = with(next, place).option.most_in_flight >= in_flight;
      (fits ? enough : few) = next;
      next += fits ? -step : step;
    }
    return enough;
  }

  StageOption option(int count, std::size_t place) {
    Way& way = options_->ways_[way_];
    auto& choices = *options_->choices_;
    const auto [tag, is_first] = way.tags.try_emplace(count, static_cast<int>(choices.size()));
    if (is_first) {
      choices.push_back(choices[at(way.tag)]);
      choices.back().stage.recompute.layers = count;
    }
    StageOption option = with(count, place).option;
    option.tag = tag->second;
    return option;
  }

 private:
  StageOptions* options_;
  std::size_t way_;
  Layers layers_;
  std::map<int, Placed> known_;
};

// The fewest recomputed layers with which so many micro-batches in flight fit, for every number of
// them that fits neither with none nor only with all of them recomputed, unless what is known beats
// the room of all of them in the time of fewer.
void StageOptions::recompute_some(std::size_t index, const Layers& layers,
                                  const std::vector<Placed>& all, const Lists& known,
                                  Lists& lists) {
  const std::size_t kept = ways_[index].kept;
  const int most = static_cast<int>(std::min<std::int64_t>(micro_batches_, most_stages_));
  Partly partly(*this, index, layers);
  for (std::size_t place = 0; place < places; ++place) {
    const Priced& repeated = all[index][place];
    const int room = std::min(most, repeated.option.most_in_flight);
    if (room < 1) continue;
    const Priced none = kept == Way::none ? Priced{} : all[kept][place];
    int needed = kept == Way::none ? 0 : none.option.most_in_flight;  // and one more
    StageOption best = none.option;
    while (needed < room) {
      best.devices = repeated.option.devices;
      best.most_in_flight = room;
      best.reduction = std::min(best.reduction, repeated.option.reduction);
      const bool hopeless = std::ranges::any_of(known[place], [&](const StageOption& o) {
        return o.devices == best.devices && beats(o, best);
      });
      if (hopeless) break;
      const int count = partly.fewest(needed + 1, place, none, repeated);
      if (count == layers.count) break;
      best = partly.option(count, place);
      lists[place].push_back(best);
      needed = best.most_in_flight;
    }
  }
}

// Whether an option is no worse than another one on as many devices at the same place, in short
// pipelines and in long ones.
bool StageOptions::beats(const StageOption& a, const StageOption& b) const {
  if (a.seconds > b.seconds || a.most_in_flight < b.most_in_flight || a.reduction > b.reduction ||
      a.after > b.after || a.forward > b.forward || a.backward > b.backward)
    return false;
  const StageOption quick_a = in_longest(a), quick_b = in_longest(b);
  return quick_a.forward <= quick_b.forward && quick_a.backward <= quick_b.backward;
}

// The options for each submesh that no other one beats; fewest devices first, then the quickest.
// Where nothing fits, one remains to tell that.
std::vector<StageOption> StageOptions::unbeaten(std::vector<StageOption> options) const {
  const auto fits = [](const StageOption& o) { return o.most_in_flight > 0; };
  std::ranges::stable_sort(options, [&](const StageOption& a, const StageOption& b) {
    if (a.devices != b.devices) return a.devices < b.devices;
    return fits(a) != fits(b) ? fits(a) : a.seconds < b.seconds;
  });
  std::vector<StageOption> kept;
  for (const StageOption& o : options) {
    bool beaten = !fits(o) && !kept.empty() && kept.back().devices == o.devices;
    for (std::size_t k = kept.size(); k-- > 0 && kept[k].devices == o.devices && !beaten;)
      beaten = beats(kept[k], o);
    if (!beaten) kept.push_back(o);
  }
  return kept;
}

StageOptions::Lists StageOptions::options_of(const Layers& layers) {
  Lists lists;
  std::vector<Placed> all;
  for (const Way& way : ways_) {
    all.push_back(placed(way, layers, way.plan.recompute));
    for (std::size_t place = 0; place < places; ++place)
      lists[place].push_back(all.back()[place].option);
  }
  for (auto& list : lists) list = unbeaten(std::move(list));
  const Lists known = lists;
  for (std::size_t w = 0; w < ways_.size(); ++w) {
    if (!s_->plan.recompute && ways_[w].plan.recompute.granularity == Recomputation::full)
      recompute_some(w, layers, all, known, lists);
  }
  for (auto& list : lists) list = unbeaten(std::move(list));
  return lists;
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
  for (int first = 0; first < problem.layers; ++first) {
    for (int end = first + 1; end <= problem.layers; ++end) {
      const bool front = first == 0, back = end == problem.layers;
      const Place place = front && back ? Place::whole
                          : front       ? Place::front
                          : back        ? Place::back
                                        : Place::middle;
      const Layers layers = layers_of_range(first, end);
      auto& known = classes.of(layers);
      if (known[static_cast<std::size_t>(place)] < 0) {
        if (expired && expired()) return {};
        Lists all = options_of(layers);
        for (std::size_t at = 0; at < all.size(); ++at) {
          if (layers.at_end == (at == static_cast<std::size_t>(Place::middle))) continue;
          known[at] = static_cast<std::int32_t>(problem.options.size());
          problem.options.push_back(std::move(all[at]));
        }
      }
      problem.range_class[problem.at(first, end)] = known[static_cast<std::size_t>(place)];
    }
  }
  return problem;
}

}  // namespace planner
