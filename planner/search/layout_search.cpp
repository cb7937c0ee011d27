#include "planner/search/layout_search.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>
#include <thread>
#include <utility>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/estimate/layer_mix.hpp"
#include "planner/search/best_plans.hpp"
#include "planner/search/layout.hpp"
#include "planner/search/search_space.hpp"

namespace planner {

using costmodel::Bytes;
using costmodel::Evaluator;
using costmodel::ParallelPlan;
using costmodel::PlanCost;
using costmodel::Scenario;
using costmodel::Seconds;

namespace {

Seconds work_of(const PlanCost& cost) {
  Seconds work;
  for (std::size_t k = 0; k < cost.times.forward.size(); ++k)
    work += cost.times.forward[k] + cost.times.backward[k];
  return work;
}

// Whether the amount of recomputation depends on the layout, because only the first layers of each
// stage are recomputed.
bool recomputes_partly(const ParallelPlan& plan, const costmodel::StackMemory& memory) {
  return recompute_as_run(plan.recompute, memory).layers > 0;
}

// A plan whose work bounds that of every layout of `plan` from below: without recomputation if the
// amount depends on the layout, else `plan` itself, whose work all layouts share.
ParallelPlan least_work(ParallelPlan plan, const costmodel::StackMemory& memory) {
  if (recomputes_partly(plan, memory)) plan.recompute = {};
  return plan;
}

// The busiest rank has at least the average work, for any layout.
Seconds work_bound(const PlanCost& cost, int ranks) {
  return static_cast<double>(cost.micro_batches) / ranks * work_of(cost);
}

// The same for 1F1B with one chunk per rank. Rank r starts its first backward after a micro-batch
// has travelled to the last stage and back, and has done at most n = min(p - r, m) forwards by
// then. With W the work of all stages and t_r that of rank r, T >= W + (m - 1) t_r - (n - 1) f_r
// (pipeline_lower_bound), and f_r <= t_r. As the t_r sum to W, T >= W (1 + 1 / sum of 1 / (m - n)).
Seconds one_chunk_bound(const PlanCost& cost, int ranks) {
  const auto m = static_cast<double>(cost.micro_batches);
  double shares = 0;
  for (int r = 0; r < ranks; ++r) {
    const double weight = m - std::min<double>(ranks - r, m);
    if (weight == 0) return work_bound(cost, ranks);
    shares += 1 / weight;
  }
  return max(work_bound(cost, ranks), (1 + 1 / shares) * work_of(cost));
}

// Whether weights, gradients and optimizer states alone rule out every layout: their sum over the
// ranks is the same for all, but for two stacks, which have more copies of the token table where
// the decoder starts on a rank of its own.
bool states_overflow(const PlanCost& cost, Bytes limit, const costmodel::ModelSpec& model) {
  if (model.encoder_decoder()) return false;
  Bytes states;
  for (const auto& [weights, after, memory] : cost.ranks)
    states += memory.weights + memory.gradients + memory.optimizer;
  return states > limit * static_cast<double>(cost.ranks.size());
}

struct BoundedFamily {
  Seconds bound;
  std::uint64_t order;
  ParallelPlan plan;
};

// The result of a family: plans that may enter the ranking, and a lower bound on the time that its
// members could still reach.
struct Opened {
  std::vector<Ranked> found;
  Seconds bound{std::numeric_limits<double>::infinity()};
  std::uint64_t sliced = 0, improved = 0, effort = 0;
  bool expired = false, spent = false;
};

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
  plan.schedule = costmodel::usual_schedule(chunks);
  plan.stage_layers = std::move(layout);
  const auto& allowed = s.search.schedules;
  const bool listed =
      allowed.empty() || std::find(allowed.begin(), allowed.end(), plan.schedule) != allowed.end();
  const bool fixed = s.plan.schedule && *s.plan.schedule != plan.schedule;
  if (!listed || fixed || !is_valid(plan, s.model, s.cluster, s.training)) return {};
  return plan;
}

class FamilySearch {
 public:
  FamilySearch(const Scenario& scenario, const Podium& podium, const std::function<bool()>& expired,
               std::uint64_t most)
      : s_(&scenario),
        podium_(&podium),
        expired_(&expired),
        most_(most),
        effort_(most, expired),
        limit_(memory_limit(scenario)),
        evaluator_(scenario.model, scenario.cluster, scenario.training) {}

  Opened open(const BoundedFamily& family) {
    effort_ = Effort(most_, *expired_);
    Opened result;
    look_at(family, result);
    result.effort = effort_.spent();
    result.expired = effort_.over();
    result.spent = effort_.over() && !effort_.stopped();
    if (result.expired) result.bound = min(result.bound, family.bound);
    return result;
  }

 private:
  void look_at(const BoundedFamily& family, Opened& result) {
    std::uint64_t order = family.order << 20;
    by_cost_.reset();
    for (const int chunks : chunk_choices(*s_, family.plan)) {
      for (auto& layout : starts(family.plan, chunks)) {
        const auto plan = with_chunks(family.plan, chunks, std::move(layout), *s_);
        if (!plan) continue;
        const auto all = members({*plan}, *s_);
        std::array<bool, 4> left{};
        try_members(all, order, false, left, result);
        if (layouts_fit(all)) try_members(all, order, true, left, result);
        order += all.size();
        if (effort_.over()) return;
      }
    }
  }

  // For a plan's price.
  bool spend_pricing(const ParallelPlan& plan) {
    return effort_.spend(effort_of_pricing * static_cast<std::uint64_t>(plan.virtual_stages()));
  }

  Spend spend() {
    return [this](std::uint64_t stages) { return effort_.spend(stages); };
  }

  // The layouts to begin with. One chunk a rank: any. Interleaved: the most even one, and the one
  // that deals to chunks what makes ranks take equal times.
  std::vector<std::vector<int>> starts(const ParallelPlan& family, int chunks) {
    std::vector<std::vector<int>> layouts{balanced_layout(s_->model.layers, chunks * family.pp)};
    if (chunks == 1) return layouts;
    if (!by_cost_) {
      const auto plain = with_chunks(family, 1, balanced_layout(s_->model.layers, family.pp), *s_);
      by_cost_.emplace();
      if (plain) {
        by_cost_ = cut_layout(*plain, Bytes(infinity), evaluator_, Seconds(infinity), spend())
                       .stage_layers;
      }
    }
    if (by_cost_->empty()) return layouts;
    auto dealt = dealt_to_chunks(*by_cost_, chunks);
    if (dealt != layouts.front()) layouts.push_back(std::move(dealt));
    return layouts;
  }

  // Members that recompute a part of the layers, or the others. `left`: the ZeRO stages of which
  // all that recompute more are too slow.
  void try_members(const std::vector<ParallelPlan>& all, std::uint64_t order, bool partial,
                   std::array<bool, 4>& left, Opened& result) {
    for (std::size_t i = 0; i < all.size() && !effort_.over(); ++i) {
      bool& done = left.at(static_cast<std::size_t>(all[i].zero));
      if ((all[i].recompute.layers > 0) != partial || done || spend_pricing(all[i])) continue;
      const bool too_slow = try_member(all[i], order + i, result);
      done = too_slow && leads(all[i], *s_);
    }
  }

  // Whether there are partially recomputing members, and some layout of the leaner members around
  // them fits.
  bool layouts_fit(const std::vector<ParallelPlan>& all) {
    bool partial = false;
    for (const ParallelPlan& member : all) partial |= member.recompute.layers > 0;
    if (!partial || all.front().vpp > 1 || !brackets_partial(all, s_->model)) return partial;
    const auto stages = static_cast<std::uint64_t>(all.front().pp);
    const auto layers = static_cast<std::uint64_t>(s_->model.layers);
    return std::any_of(all.rbegin(), all.rend(), [&](const ParallelPlan& member) {
      return member.recompute.layers == 0 &&
             !states_overflow(evaluator_.cost(member), limit_, s_->model) &&
             !effort_.spend(stages * layers) && some_layout_fits(member, limit_, evaluator_);
    });
  }

  // Returns whether no layout is quick enough, whatever fits.
  bool try_member(ParallelPlan member, std::uint64_t order, Opened& result) {
    if (!is_valid(member, s_->model, s_->cluster, s_->training)) return false;
    const PlanCost& cost = evaluator_.cost(least_work(member, s_->training.stack.memory));
    const Seconds least =
        member.vpp == 1 ? one_chunk_bound(cost, member.pp) : work_bound(cost, member.pp);
    if (!podium_->open_to(least)) return true;
    if (states_overflow(cost, limit_, s_->model)) return false;
    return member.vpp == 1 ? try_cuts(member, order, result)
                           : try_chunks(std::move(member), order, result);
  }

  // Every layout of one chunk a rank: the one that the bound is of, and what is better around it.
  bool try_cuts(const ParallelPlan& member, std::uint64_t order, Opened& result) {
    constexpr double slack = 1 + 1e-9;  // as in the ranking
    const LayoutCut cut = cut_layout(member, limit_, evaluator_, podium_->worst() * slack, spend());
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
  Seconds try_rest(ParallelPlan member, Seconds bound, Seconds best, std::uint64_t order,
                   Opened& result) {
    constexpr std::size_t few = 1024;
    constexpr double slack = 1 + 1e-9;
    const Seconds below = min(best, podium_->worst()) * slack;
    const auto rest = layouts_within(member, limit_, evaluator_, below, few);
    if (!rest) return bound;
    for (const std::vector<int>& layout : *rest) {
      member.stage_layers = layout;
      if (spend_pricing(member)) return bound;
      const PlanCost& cost = evaluator_.cost(member);
      if (cost.peak > limit_ || cost.bound.iteration > below) continue;
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
  bool try_chunks(ParallelPlan member, std::uint64_t order, Opened& result) {
    const PlanCost& cost = evaluator_.cost(member);
    const Seconds bound = cost.bound.iteration;
    const bool too_slow = !podium_->open_to(bound_with_more(cost, member, *s_));
    if (cost.peak <= limit_ && podium_->open_to(bound))
      improve(std::move(member), bound, order, result);
    return too_slow;
  }

  // A layout that starts much slower than the ranking is not improved, nor one at its bound.
  // Returns the time of what it has become.
  Seconds improve(ParallelPlan member, Seconds bound, std::uint64_t order, Opened& result) {
    const double near = member.vpp == 1 ? 0.9 : 0.98;
    constexpr double close = 1.0005;
    const PlanCost& cost = evaluator_.cost(member);
    if (cost.peak > limit_) return Seconds(infinity);
    Layout layout{member.stage_layers, {}, cost.peak};
    layout.iteration = evaluator_.iteration_time(member);
    if (layout.iteration > bound * close && podium_->open_to(near * layout.iteration)) {
      layout = improved_layout(member, member.stage_layers, limit_, evaluator_, spend());
      ++result.improved;
    }
    member.stage_layers = layout.stage_layers;
    result.bound = min(result.bound, layout.iteration);
    result.found.push_back(plainly({layout.iteration, layout.peak, order, std::move(member)}));
    return layout.iteration;
  }

  // Even stages stand for a layout that is not worth its words.
  Ranked plainly(Ranked found) {
    ParallelPlan plain = found.plan;
    plain.stage_layers.clear();
    if (!is_valid(plain, s_->model, s_->cluster, s_->training)) return found;
    const Bytes peak = evaluator_.cost(plain).peak;
    if (peak > limit_) return found;
    const Seconds time = evaluator_.iteration_time(plain);
    if (time > found.time * worth_words) return found;
    return {time, peak, found.order, std::move(plain)};
  }

  const Scenario* s_;
  const Podium* podium_;
  const std::function<bool()>* expired_;
  std::uint64_t most_;  // effort for a family
  Effort effort_;
  Bytes limit_;
  Evaluator evaluator_;
  std::optional<std::vector<int>> by_cost_;  // layers by rank of the family that is open
};

std::vector<BoundedFamily> bounded_families(const Scenario& s) {
  Evaluator evaluator(s.model, s.cluster, s.training);
  std::vector<BoundedFamily> families;
  for (const Family& family : enumerate_uneven(s).families) {
    const Seconds bound = bound_of(family, s, [&](const ParallelPlan& plan) {
      return work_bound(evaluator.cost(least_work(plan, s.training.stack.memory)), plan.pp);
    });
    families.push_back({bound, families.size() + 1, family.plan});
  }
  std::sort(families.begin(), families.end(), [](const auto& a, const auto& b) {
    return a.bound != b.bound ? a.bound < b.bound : a.order < b.order;
  });
  return families;
}

// The best even plan stands for layouts that are quicker, but not by what they have to be.
std::vector<ParallelPlan> worth_telling(const std::vector<Ranked>& ranked,
                                        const SearchResult& even) {
  std::vector<ParallelPlan> plans;
  for (const Ranked& r : ranked) {
    const Seconds plain = even.plans.empty() ? Seconds(0) : even.plans.front().iteration;
    const bool worth = r.time >= plain || r.time * worth_words < plain;
    const ParallelPlan& plan = worth ? r.plan : even.plans.front().plan;
    if (std::find(plans.begin(), plans.end(), plan) == plans.end()) plans.push_back(plan);
  }
  return plans;
}

void offer_new(Podium& podium, const Ranked& candidate) {
  const auto& ranked = podium.ranked();
  const bool known = std::any_of(ranked.begin(), ranked.end(),
                                 [&](const Ranked& r) { return r.plan == candidate.plan; });
  if (!known) podium.offer(candidate);
}

}  // namespace

LayoutSearch search_layouts(const Scenario& s, const SearchResult& even, int threads,
                            const std::function<bool()>& expired, std::uint64_t effort) {
  Podium podium(static_cast<std::size_t>(s.search.top));
  for (const auto& e : even.plans) podium.offer({e.iteration, e.peak, 0, e.plan});
  const auto families = bounded_families(s);
  LayoutSearch result;
  result.families = families.size();
  result.lower_bound =
      even.plans.empty() ? Seconds(std::numeric_limits<double>::infinity()) : even.lower_bound;
  // Each fixed batch of families sees the same ranking, for any number of threads.
  constexpr std::size_t batch = 16;
  constexpr std::uint64_t families_share = 4;  // a family's part of the effort
  std::vector<FamilySearch> workers;
  for (int i = 0; i < std::max(1, threads); ++i)
    workers.emplace_back(s, podium, expired, effort / families_share);
  std::size_t next = 0;
  bool stopped = false;
  for (; next < families.size() && podium.open_to(families[next].bound) && !stopped;
       next = std::min(next + batch, families.size())) {
    const std::size_t count = std::min(batch, families.size() - next);
    std::vector<Opened> opened(count);
    std::atomic<std::size_t> taken{0};
    const auto work = [&](FamilySearch& worker) {
      for (std::size_t i; (i = taken++) < count;) {
        if (podium.open_to(families[next + i].bound)) opened[i] = worker.open(families[next + i]);
      }
    };
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < workers.size(); ++i)
      others.emplace_back([&, i] { work(workers[i]); });
    work(workers.front());
    others.clear();
    for (const Opened& o : opened) {
      for (const Ranked& found : o.found) offer_new(podium, found);
      result.lower_bound = min(result.lower_bound, o.bound);
      result.sliced += o.sliced;
      result.improved += o.improved;
      result.effort += o.effort;
      result.spent |= o.spent;
      result.expired |= o.expired;
      stopped |= o.expired && !o.spent;
      ++result.opened;
    }
    stopped |= result.effort > effort;
  }
  if (next < families.size() && podium.open_to(families[next].bound)) {
    result.spent |= result.effort > effort;
    result.expired |= stopped;
  }
  if (next < families.size()) result.lower_bound = min(result.lower_bound, families[next].bound);
  Evaluator evaluator(s.model, s.cluster, s.training);
  for (const ParallelPlan& plan : worth_telling(podium.ranked(), even))
    result.plans.push_back(evaluator.estimate(plan));
  if (!result.plans.empty())
    result.lower_bound = min(result.lower_bound, result.plans.front().iteration);
  return result;
}

}  // namespace planner
