#include "planner/stage_options.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "costmodel/plan_shape.hpp"

namespace planner {

using costmodel::Bytes;
using costmodel::LayerMix;
using costmodel::ParallelPlan;
using costmodel::PlanCost;
using costmodel::Recomputation;
using costmodel::Recompute;
using costmodel::Scenario;
using costmodel::Seconds;

std::vector<Recompute> recompute_offered(const Scenario& s) {
  if (s.plan.recompute) return {*s.plan.recompute};
  std::vector<Recompute> all;
  const auto& listed = s.search.recompute;
  for (const auto kind : {Recomputation::none, Recomputation::selective, Recomputation::full}) {
    const bool offered = kind != Recomputation::selective || s.training.stack.selective_recompute;
    if (offered &&
        (listed.empty() || std::find(listed.begin(), listed.end(), kind) != listed.end()))
      all.push_back({kind, 0});
  }
  return all;
}

std::vector<int> zero_offered(const Scenario& s, std::int64_t replicas) {
  if (s.plan.zero) return {*s.plan.zero};
  std::vector<int> all;
  for (int z = 0; z <= (replicas > 1 ? s.training.stack.max_zero : 0); ++z) {
    const auto& listed = s.search.zero;
    if (listed.empty() || std::find(listed.begin(), listed.end(), z) != listed.end())
      all.push_back(z);
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
    for (int tp = 1; tp <= std::min({n, per_node, most}); ++tp)
      if (n % tp == 0 && (!s_->plan.tp || *s_->plan.tp == tp)) add_ways(n, tp);
  }
}

void StageOptions::add_ways(int n, int tp) {
  const int cp = s_->plan.cp.value_or(1);
  if (n % (tp * cp) != 0) return;
  ParallelPlan plan;
  plan.tp = tp;
  plan.cp = cp;
  plan.cp_comm = s_->plan.cp_comm.value_or(plan.cp_comm);
  plan.ep = s_->plan.ep.value_or(1);
  plan.etp = s_->plan.etp.value_or(1);
  plan.dp = n / (tp * cp);
  if (s_->plan.dp && *s_->plan.dp != plan.dp) return;
  if (terms_.sequences % plan.dp != 0) return;
  plan.micro_batch = terms_.sequences / plan.dp;
  if (s_->search.max_micro_batch > 0 && plan.micro_batch > s_->search.max_micro_batch) return;
  plan.sequence_parallel = terms_.sequence_parallel && tp > 1;
  const costmodel::ClusterSpec submesh = resized(evaluator_.cluster(), n);
  for (const Recompute& recompute : recompute_offered(*s_)) {
    for (const int zero : zero_offered(*s_, plan.replicas())) {
      plan.recompute = recompute;
      plan.zero = zero;
      if (!is_valid(plan, s_->model, submesh, s_->training)) continue;
      const auto tag = static_cast<int>(choices_->size());
      const auto& groups = s_->cluster.groups;
      const std::string name = groups.empty() ? "" : groups[static_cast<std::size_t>(group_)].name;
      choices_->push_back({group_, {tp, plan.dp, recompute, zero, name}});
      ways_.push_back({n, tag, plan});
      ParallelPlan pipeline = plan;
      pipeline.pp = alike(ways_.back());
      const int partial = partial_layers(pipeline);
      if (partial > 0 && std::find(partial_.begin(), partial_.end(), partial) == partial_.end())
        partial_.push_back(partial);
    }
  }
}

// Stages of a way's size that the devices make.
int StageOptions::alike(const Way& way) const {
  return static_cast<int>(evaluator_.cluster().devices / way.devices);
}

// The first layers of a stage that the plan as it is run recomputes; 0: all or none.
int StageOptions::partial_layers(const ParallelPlan& plan) const {
  const bool halves =
      s_->training.stack.selective_half && plan.recompute.granularity == Recomputation::selective;
  return halves ? half_recomputed(plan).recompute.layers : plan.recompute.layers;
}

StageOptions::Layers StageOptions::layers_of_range(int first, int end) const {
  const int from = std::max(first - 1, 0);
  return {from, std::min(end - 1, static_cast<int>(s_->model.layers)) - from};
}

// With so many of the first recomputed; 0: as many as a way that makes no difference between them.
LayerMix StageOptions::mix_of(const Layers& layers, int recomputed) const {
  ParallelPlan partial;
  partial.recompute.layers = recomputed;
  const int again = recomputed_layers(partial, layers.count);
  const auto moe = static_cast<int>(s_->model.moe_layers(layers.first, layers.count));
  const auto moe_again = static_cast<int>(s_->model.moe_layers(layers.first, again));
  return {layers.count - moe, moe, again - moe_again, moe_again};
}

// Ranges of the same content cost the same, whichever way they are run.
std::vector<int> StageOptions::content(const Layers& layers, Place place) const {
  const LayerMix whole = mix_of(layers, 0);
  std::vector<int> key{whole.dense, whole.moe, static_cast<int>(place)};
  for (const int partial : partial_) key.push_back(mix_of(layers, partial).moe_again);
  return key;
}

bool StageOptions::fits(const PlanCost& cost, std::size_t rank) const {
  return cost.memory[rank].total() <= limit_;
}

StageOption StageOptions::priced(const PlanCost& cost, std::size_t rank) const {
  StageOption option;
  const Seconds after =
      cost.gradient_exposed[rank] + cost.optimizer[rank] + cost.gather_exposed[rank];
  option.seconds = (cost.times.forward[rank] + cost.times.backward[rank] +
                    after / static_cast<double>(micro_batches_))
                       .value;
  return option;
}

StageOption StageOptions::alone(const Way& way, const Layers& layers) {
  ParallelPlan plan = way.plan;
  plan.pp = 1;
  const PlanCost& cost = evaluator_.cost(plan, {mix_of(layers, partial_layers(plan))});
  StageOption option = priced(cost, 0);
  option.most_in_flight = fits(cost, 0) ? any_in_flight : 0;
  return option;
}

// A pipeline of p stages like this one holds p micro-batches on its first rank and p - 1 on its
// second; one of p + 1 stages one more on each, as long as these are fewer than m: memory is
// linear in them.
StageOption StageOptions::option(const Way& way, const Layers& layers, Place place) {
  if (place == Place::whole) return alone(way, layers);
  const std::int64_t most = std::min<std::int64_t>(s_->model.layers + 2, micro_batches_ - 1);
  ParallelPlan plan = way.plan;
  plan.pp = alike(way);
  const LayerMix mix = mix_of(layers, partial_layers(plan));
  const std::int64_t least = place == Place::front ? 2 : 3;
  plan.pp = static_cast<int>(std::clamp<std::int64_t>(plan.pp, least, std::max(least, most)));
  const auto ranks = static_cast<std::size_t>(plan.pp);
  const std::size_t rank = place == Place::front ? 0 : place == Place::middle ? 1 : ranks - 1;
  const PlanCost& cost = evaluator_.cost(plan, std::vector<LayerMix>(ranks, mix));
  StageOption option = priced(cost, rank);
  const bool fit = fits(cost, rank);
  if (place == Place::back) {
    option.most_in_flight = fit ? any_in_flight : 0;
    return option;
  }
  const double held = cost.memory[rank].in_flight_micro_batches;
  const Bytes total = cost.memory[rank].total();
  ++plan.pp;
  const PlanCost& longer = evaluator_.cost(plan, std::vector<LayerMix>(ranks + 1, mix));
  const double more = longer.memory[rank].in_flight_micro_batches - held;
  const Bytes each = more > 0 ? (longer.memory[rank].total() - total) / more : Bytes(0);
  if (each.value <= 0) {
    option.most_in_flight = fit ? any_in_flight : 0;
  } else {
    const double count = std::floor(held + (limit_ - total) / each);
    option.most_in_flight = static_cast<int>(std::clamp(count, 0.0, 1e6));
  }
  return option;
}

std::vector<StageOption> StageOptions::options(const Layers& layers, Place place) {
  std::vector<StageOption> all;
  for (const Way& way : ways_) {
    StageOption found = option(way, layers, place);
    found.devices = way.devices;
    found.tag = way.tag;
    all.push_back(found);
  }
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

SlicingProblem StageOptions::problem() {
  SlicingProblem problem;
  problem.layers = static_cast<int>(s_->model.layers) + 2;
  problem.devices = static_cast<int>(evaluator_.cluster().devices);
  problem.micro_batches = micro_batches_;
  problem.clear_ranges();
  std::map<std::vector<int>, std::int32_t> classes;
  for (int first = 0; first < problem.layers; ++first) {
    for (int end = first + 1; end <= problem.layers; ++end) {
      const bool front = first == 0, back = end == problem.layers;
      const Place place = front && back ? Place::whole
                          : front       ? Place::front
                          : back        ? Place::back
                                        : Place::middle;
      const Layers layers = layers_of_range(first, end);
      const auto [at, is_new] = classes.emplace(content(layers, place),
                                                static_cast<std::int32_t>(problem.options.size()));
      if (is_new) problem.options.push_back(options(layers, place));
      problem.range_class[problem.at(first, end)] = at->second;
    }
  }
  return problem;
}

}  // namespace planner
