#include "planner/search/family_search.hpp"

#include <algorithm>
#include <utility>

#include "costmodel/estimate/layer_mix.hpp"
#include "planner/search/grid_search.hpp"
#include "planner/search/search_space.hpp"

namespace planner {

using namespace costmodel;

namespace {

Seconds work_of(const PlanCost& cost) {
  Seconds work;
  for (std::size_t k = 0; k < cost.times.forward.size(); ++k)
    work += cost.times.forward[k] + cost.times.backward[k];
  return work;
}

// Whether the amount of recomputation depends on the layout, because only the first layers of each
// stage are recomputed.
bool recomputes_partly(const ParallelPlan& plan, const StackMemory& memory) {
  return recompute_as_run(plan.recompute, memory).layers > 0;
}

// A plan whose work bounds that of every layout of `plan` from below: without recomputation if the
// amount depends on the layout, else `plan` itself, whose work all layouts share.
ParallelPlan least_work(ParallelPlan plan, const StackMemory& memory) {
  if (recomputes_partly(plan, memory)) plan.recompute = {};
  return plan;
}

// The busiest rank has at least the average work, for any layout.
Seconds work_bound(std::int64_t micro_batches, Seconds work, int ranks) {
  return static_cast<double>(micro_batches) / ranks * work;
}

// The same for 1F1B with one chunk per rank. Rank r starts its first backward after a micro-batch
// has travelled to the last stage and back, and has done at most n = min(p - r, m) forwards by
// then. With W the work of all stages and t_r that of rank r, T >= W + (m - 1) t_r - (n - 1) f_r
// (pipeline_lower_bound), and f_r <= t_r. As the t_r sum to W, T >= W (1 + 1 / sum of 1 / (m - n)).
Seconds one_chunk_bound(std::int64_t micro_batches, Seconds work, int ranks) {
  const auto m = static_cast<double>(micro_batches);
  double shares = 0;
  for (int r = 0; r < ranks; ++r) {
    const double weight = m - std::min<double>(ranks - r, m);
    if (weight == 0) return work_bound(micro_batches, work, ranks);
    shares += 1 / weight;
  }
  return max(work_bound(micro_batches, work, ranks), (1 + 1 / shares) * work);
}

// Whether weights, gradients and optimizer states alone rule out every layout: their sum over the
// ranks is the same for all, but for two stacks, which have more copies of the token table where
// the decoder starts on a rank of its own.
bool states_overflow(const PlanCost& cost, Bytes limit, const ModelSpec& model) {
  if (model.encoder_decoder()) return false;
  Bytes states;
  for (const auto& [weights, after, memory] : cost.ranks)
    states += memory.weights + memory.gradients + memory.optimizer;
  return states > limit * static_cast<double>(cost.ranks.size());
}

// Chunks per rank to try; the largest published number is 12.
std::vector<int> chunk_choices(const Scenario& s, const ParallelPlan& plan) {
  constexpr int most_published = 12;
  if (s.plan.vpp) return {*s.plan.vpp};
  const int limit = s.search.max_vpp > 0 ? s.search.max_vpp : most_published;
  const auto most = static_cast<int>((s.model.layers + 2) / plan.pp);
  std::vector<int> choices;
  for (int v = 1; v <= std::min(limit, most); ++v) choices.push_back(v);
  return choices;
}

// The plan with this number of chunks per rank and this layout, if the rules allow it.
std::optional<ParallelPlan> with_chunks(ParallelPlan plan, int chunks, std::vector<int> layout,
                                        const Scenario& s) {
  if (layout.empty()) return {};
  plan.vpp = chunks;
  plan.schedule = usual_schedule(chunks);
  const std::vector<int> groups = micro_batch_groups_offered(s, plan);
  if (groups.empty()) return {};
  plan.choices.group = groups.front();
  plan.stage_layers = std::move(layout);
  const auto& allowed = s.search.schedules;
  const bool listed = allowed.empty() || std::ranges::find(allowed, plan.schedule) != allowed.end();
  const bool fixed = s.plan.schedule && *s.plan.schedule != plan.schedule;
  if (!listed || fixed || !is_valid(plan, s.model, s.cluster, s.training)) return {};
  return plan;
}

}  // namespace

std::vector<BoundedFamily> bounded_families(const Scenario& s) {
  Evaluator evaluator(s.model, s.cluster, s.training);
  std::vector<BoundedFamily> families;
  for (const Family& family : enumerate_uneven(s).families) {
    const Seconds bound = bound_of(family, s, [&](const ParallelPlan& plan) {
      const PlanCost& cost = evaluator.cost(least_work(plan, s.training.stack.memory));
      return work_bound(cost.micro_batches, work_of(cost), plan.pp);
    });
    families.push_back({bound, families.size() + 1, family.plan});
  }
  std::ranges::sort(families, [](const auto& a, const auto& b) {
    return a.bound != b.bound ? a.bound < b.bound : a.order < b.order;
  });
  return families;
}

FamilySearch::FamilySearch(const Scenario& scenario, const Podium& podium,
                           const std::function<bool()>& expired, std::uint64_t most)
    : s_(&scenario),
      podium_(&podium),
      expired_(&expired),
      most_(most),
      effort_(most, expired),
      limit_(memory_limit(scenario)),
      evaluator_(scenario.model, scenario.cluster, scenario.training) {}

OpenedFamily FamilySearch::open(const BoundedFamily& family) {
  effort_ = Effort(most_, *expired_);
  OpenedFamily result;
  look_at(family, result);
  result.effort = effort_.spent();
  result.expired = effort_.over();
  result.spent = effort_.over() && !effort_.stopped();
  if (result.expired) result.bound = min(result.bound, family.bound);
  return result;
}

void FamilySearch::look_at(const BoundedFamily& family, OpenedFamily& result) {
  std::uint64_t order = family.order << 20;
  by_cost_.reset();
  overflows_.fill(std::nullopt);
  stages_.clear();
  for (const int chunks : chunk_choices(*s_, family.plan)) {
    shared_.clear();
    for (int start = 0; start < 2; ++start) {
      open_ = false;
      const auto plan = with_chunks(family.plan, chunks, layout(family.plan, chunks, start), *s_);
      if (plan) try_layout(*plan, order, result);
      if (effort_.over()) return;
      // All layouts of so many chunks have the same work.
      if (chunks == 1 || (plan && !open_)) break;
    }
  }
}

void FamilySearch::try_layout(const ParallelPlan& plan, std::uint64_t& order,
                              OpenedFamily& result) {
  const auto all = members({plan}, *s_);
  std::array<bool, 4> left{};
  for (std::size_t zero = 0; zero < left.size(); ++zero)
    left.at(zero) = overflows_.at(zero).value_or(false);
  too_large_.fill(true);
  try_members(all, order, false, left, result);
  if (layouts_fit(all, left)) {
    if (plan.vpp > 1 && brackets_partial(all, *s_)) leave_too_large(left);
    try_members(all, order, true, left, result);
  }
  order += all.size();
}

// For a plan's price.
bool FamilySearch::spend_pricing(const ParallelPlan& plan) {
  return effort_.spend(effort_of_pricing * static_cast<std::uint64_t>(plan.virtual_stages()));
}

Spend FamilySearch::spend() {
  return [this](std::uint64_t stages) { return effort_.spend(stages); };
}

// Priced in one search for another: whether a layout fits, which is the best, and which is by time.
LayoutStages& FamilySearch::stages_of(const ParallelPlan& member) {
  const auto known = std::ranges::find(stages_, member, &LayoutStages::plan);
  return known != stages_.end() ? *known : stages_.emplace_back(member, limit_, evaluator_);
}

// The layouts to begin with, the second of chunks alone: the most even one, and the one that
// deals to chunks what makes ranks take equal times. Empty: there is none, or it is the first.
std::vector<int> FamilySearch::layout(const ParallelPlan& family, int chunks, int start) {
  auto even = balanced_layout(s_->model.layers, chunks * family.pp);
  if (start == 0) return even;
  if (!by_cost_) {
    const auto plain = with_chunks(family, 1, balanced_layout(s_->model.layers, family.pp), *s_);
    by_cost_.emplace();
    if (plain) by_cost_ = cut_by_time(stages_of(*plain), spend());
  }
  auto dealt = by_cost_->empty() ? std::vector<int>() : dealt_to_chunks(*by_cost_, chunks);
  return dealt == even ? std::vector<int>() : dealt;
}

// Members that recompute a part of the layers, or the others. `left`: the ZeRO stages of which
// all that recompute more are too slow.
void FamilySearch::try_members(const std::vector<ParallelPlan>& all, std::uint64_t order,
                               bool partial, std::array<bool, 4>& left, OpenedFamily& result) {
  for (std::size_t i = 0; i < all.size() && !effort_.over(); ++i) {
    bool& done = left.at(static_cast<std::size_t>(all[i].zero));
    if ((all[i].recompute.layers > 0) != partial || done || spend_pricing(all[i])) continue;
    const bool too_slow = try_member(all[i], order + i, result);
    done = too_slow && leads(all[i]);
  }
}

// Whether there are partially recomputing members, and some layout of the leaner members around
// them fits; of the ZeRO stages that are `left` none is asked for.
bool FamilySearch::layouts_fit(const std::vector<ParallelPlan>& all,
                               const std::array<bool, 4>& left) {
  const auto open = [&](const ParallelPlan& member) { return !left.at(at(member.zero)); };
  const bool partial = std::ranges::any_of(
      all, [&](const ParallelPlan& member) { return member.recompute.layers > 0 && open(member); });
  if (!partial || all.front().vpp > 1 || !brackets_partial(all, *s_)) return partial;
  const auto stages = static_cast<std::uint64_t>(all.front().pp);
  const auto layers = static_cast<std::uint64_t>(s_->model.layers);
  return std::any_of(all.rbegin(), all.rend(), [&](const ParallelPlan& member) {
    return member.recompute.layers == 0 && open(member) && !overflow(member) &&
           !effort_.spend(stages * layers) && some_layout_fits(stages_of(member));
  });
}

// `priced`: the member's price, if this had to compute it.
const SharedWork& FamilySearch::shared_of(const ParallelPlan& member, const PlanCost** priced) {
  const ParallelPlan least = least_work(member, s_->training.stack.memory);
  for (const SharedWork& known : shared_)
    if (known.recompute == least.recompute && known.zero == least.zero) return known;
  const PlanCost& cost = evaluator_.cost(least);
  if (priced != nullptr && least.recompute == member.recompute) *priced = &cost;
  auto& overflows = overflows_.at(static_cast<std::size_t>(member.zero));
  if (!overflows) overflows = states_overflow(cost, limit_, s_->model);
  shared_.push_back({least.recompute, least.zero, cost.micro_batches, work_of(cost)});
  return shared_.back();
}

// Whether states alone are too large: the same for every layout, recomputation and number of
// chunks.
bool FamilySearch::overflow(const ParallelPlan& member) {
  const auto& known = overflows_.at(static_cast<std::size_t>(member.zero));
  if (!known) shared_of(member);
  return *known;
}

// With chunks the layout is given: where neither without recomputation nor with all of it the
// plan fits, none between does.
void FamilySearch::leave_too_large(std::array<bool, 4>& left) const {
  for (std::size_t zero = 0; zero < left.size(); ++zero)
    left.at(zero) = left.at(zero) || too_large_.at(zero);
}

// Returns whether no layout is quick enough, whatever fits.
bool FamilySearch::try_member(ParallelPlan member, std::uint64_t order, OpenedFamily& result) {
  // Unknown of what is not priced.
  bool& too_large = too_large_.at(static_cast<std::size_t>(member.zero));
  const bool brackets =
      member.recompute == Recompute{} || member.recompute == Recompute{Recomputation::full, 0};
  if (!is_valid(member, s_->model, s_->cluster, s_->training)) {
    if (brackets) too_large = false;
    return false;
  }
  const PlanCost* priced = nullptr;
  const SharedWork& shared = shared_of(member, &priced);
  const Seconds least = member.vpp == 1
                            ? one_chunk_bound(shared.micro_batches, shared.work, member.pp)
                            : work_bound(shared.micro_batches, shared.work, member.pp);
  if (!podium_->open_to(least, member)) {
    if (brackets) too_large = false;
    return true;
  }
  if (overflow(member)) return false;
  open_ = true;
  return member.vpp == 1 ? try_cuts(member, order, result)
                         : try_chunks(std::move(member), priced, order, result);
}

// Every layout of one chunk a rank: the one that the bound is of, and what is better around it.
bool FamilySearch::try_cuts(const ParallelPlan& member, std::uint64_t order, OpenedFamily& result) {
  constexpr double slack = 1 + 1e-9;  // as in the ranking
  const LayoutCut cut = cut_layout(stages_of(member), podium_->worst(member) * slack, spend());
  ++result.sliced;
  if (cut.expired) effort_.give_up();
  if (cut.stage_layers.empty()) return cut.too_slow;
  // Few micro-batches leave the bound far away: then there are other starts.
  constexpr double far = 1.01;
  Seconds best(infinity);
  for (const auto& start : {cut.stage_layers, cut.least_work, member.stage_layers}) {
    if (best <= cut.bound * far) break;
    ParallelPlan plan = member;
    plan.stage_layers = start;
    best = min(best, improve(std::move(plan), cut.bound, order, result));
  }
  result.bound = min(result.bound, try_rest(member, cut.bound, best, order, result));
  return false;
}

// Tries every layout that may be better than the best found or ranked, where they are few.
// Returns a bound of all.
Seconds FamilySearch::try_rest(ParallelPlan member, Seconds bound, Seconds best,
                               std::uint64_t order, OpenedFamily& result) {
  constexpr std::size_t few = 1024;
  constexpr double slack = 1 + 1e-9;
  const Seconds below = min(best, podium_->worst(member)) * slack;
  const auto rest = layouts_within(stages_of(member), below, few);
  if (!rest) return bound;
  for (const std::vector<int>& layout : *rest) {
    member.stage_layers = layout;
    if (spend_pricing(member)) return bound;
    const PlanCost& cost = evaluator_.cost(member);
    if (cost.bound.iteration > below || !evaluator_.cost_within(member, limit_).within(limit_))
      continue;
    const Bytes peak = cost.peak;
    effort_.spend(static_cast<std::uint64_t>(evaluator_.simulated_actions(member)));
    const Seconds time = evaluator_.iteration_time(member);
    if (time >= best) continue;
    best = time;
    result.found.push_back(plainly({time, peak, order, member}));
  }
  return min(best, below);
}

// Interleaved chunks: those to begin with, and what is better around them.
bool FamilySearch::try_chunks(ParallelPlan member, const PlanCost* priced, std::uint64_t order,
                              OpenedFamily& result) {
  const PlanCost& cost = priced != nullptr ? *priced : evaluator_.cost(member);
  const int widest = micro_batch_groups_offered(*s_, member).back();
  Seconds bound = cost.bound.iteration, least = bound_with_more(cost, member, *s_);
  if (widest != member.choices.group) {  // a larger group waits less, and may hide more
    least = least - (cost.bound.pipeline - bound_in_groups(cost, member, widest)) *
                        iteration_factor(s_->cluster);
    bound = least;
  }
  const bool too_slow = !podium_->open_to(least, member);
  const bool open = podium_->open_to(bound, member);
  const bool fits = (open ? evaluator_.cost_within(member, limit_) : cost).within(limit_);
  if (fits) too_large_.at(static_cast<std::size_t>(member.zero)) = false;
  if (fits && open) improve(std::move(member), bound, order, result);
  return too_slow;
}

// Takes the group of micro-batches with which the layout is fastest.
void FamilySearch::regroup(ParallelPlan& member, Seconds bound, Layout& layout) {
  for (const int group : micro_batch_groups_offered(*s_, member)) {
    if (layout.iteration <= bound || effort_.over()) return;
    ParallelPlan plan = member;
    plan.choices.group = group;
    if (group == member.choices.group || spend_pricing(plan)) continue;
    const PlanCost& cost = evaluator_.cost_within(plan, limit_);
    if (!cost.within(limit_)) return;  // nor would more
    const Bytes peak = cost.peak;
    const Seconds time = evaluator_.iteration_time(plan);
    if (time >= layout.iteration) continue;
    member.choices.group = group;
    layout.iteration = time;
    layout.peak = peak;
  }
}

// A layout that starts much slower than the ranking is not improved, nor one at its bound. Of
// chunks the most even layout may be far from the best: where few actions are simulated, so that
// trying is cheap, each is improved. Returns the time of what it has become.
Seconds FamilySearch::improve(ParallelPlan member, Seconds bound, std::uint64_t order,
                              OpenedFamily& result) {
  constexpr double close = 1.0005;
  constexpr std::int64_t few = 256;
  const PlanCost& cost = evaluator_.cost_within(member, limit_);
  const bool cheap = member.vpp > 1 && cost.micro_batches * member.virtual_stages() <= few;
  const double near = member.vpp == 1 ? 0.9 : 0.98;
  if (!cost.within(limit_)) return Seconds(infinity);
  Layout layout{member.stage_layers, {}, cost.peak};
  layout.iteration = evaluator_.iteration_time(member);
  regroup(member, bound, layout);
  const bool promises = cheap || podium_->open_to(near * layout.iteration, member);
  if (layout.iteration > bound * close && promises) {
    layout = improved_layout(member, member.stage_layers, limit_, evaluator_, spend());
    ++result.improved;
    member.stage_layers = layout.stage_layers;
    regroup(member, bound, layout);
  }
  result.bound = min(result.bound, layout.iteration);
  result.found.push_back(plainly({layout.iteration, layout.peak, order, std::move(member)}));
  return layout.iteration;
}

// Even stages stand for a layout that is not worth its words.
Ranked FamilySearch::plainly(Ranked found) {
  ParallelPlan plain = found.plan;
  plain.stage_layers.clear();
  if (s_->training.stack.defaults.layout_by_cost) return found;  // there none are the stack's cut
  if (!is_valid(plain, s_->model, s_->cluster, s_->training)) return found;
  const Bytes peak = evaluator_.cost_within(plain, limit_).peak;
  if (peak > limit_) return found;
  const Seconds time = evaluator_.iteration_time(plain);
  if (time > found.time * worth_words) return found;
  return {time, peak, found.order, std::move(plain)};
}

}  // namespace planner
