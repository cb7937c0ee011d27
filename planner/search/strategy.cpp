#include "planner/search/strategy.hpp"

#include <algorithm>
#include <utility>

#include "costmodel/base/parallel_for.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "planner/search/best_plans.hpp"
#include "planner/search/replica_plan.hpp"
#include "planner/search/simplest_plan.hpp"

namespace planner {

using namespace costmodel;

Reach usual_reach(const Scenario& scenario) {
  if (!stages_alike(scenario)) return Reach::meshes;
  const bool few = scenario.model.layers <= most_cut_layers;
  const StackOffers& offers = scenario.training.stack.offers;
  // Who cuts layers by their costs takes no other layout.
  const bool own_cut = scenario.training.stack.defaults.layout_by_cost;
  if (!few || !offers.any_layers() || own_cut) return Reach::even;
  const bool small = scenario.cluster.devices <= most_own_devices;
  return offers.stage_sizes && small ? Reach::sizes : Reach::layouts;
}

namespace {

// Puts the simplest plan first, in the place of its family. No even plan competes: all of these
// have stages or replicas that differ.
void choose_mixed(const Scenario& s, MeshSearch& found) {
  if (found.plans.empty()) return;
  Evaluator evaluator(s.model, s.cluster, s.training);
  std::vector<Estimate> candidates = found.plans;
  if (found.simplest) candidates.push_back(evaluator.estimate(*found.simplest));
  const Estimate chosen = simplest_plan(s, candidates, {}, evaluator);
  if (chosen.plan == found.plans.front().plan) return;
  found.fastest = found.plans.front();
  found.plans = chosen_first(std::move(found.plans), chosen, s);
}

// Of stages or devices that differ.
void search_apart(const Scenario& s, int threads, const std::function<bool()>& stopped,
                  Strategies& all) {
  all.meshes = search_meshes(s, threads, stopped);
  rank_replicas(*all.meshes, s);
  choose_mixed(s, *all.meshes);
  all.fastest = all.meshes->fastest;
  all.found.plans = all.meshes->plans;
  all.found.lower_bound = all.meshes->lower_bound;
  all.found.expired = all.meshes->expired;
}

// Only plans that are below the best alike one are searched; those that are worth their words
// lead the ranking.
void add_own_sizes(const Scenario& s, int threads, const std::function<bool()>& stopped,
                   Strategies& all) {
  const std::vector<Estimate>& alike = all.layouts->plans;
  const Seconds below = alike.empty() ? Seconds(infinity) : alike.front().iteration;
  all.meshes = search_meshes(s, threads, stopped, below);
  std::vector<Estimate> ranked;
  for (const Estimate& own : all.meshes->plans)
    if (own.iteration * worth_words < below) ranked.push_back(own);
  ranked.insert(ranked.end(), alike.begin(), alike.end());
  if (ranked.size() > at(s.search.top)) ranked.erase(ranked.begin() + s.search.top, ranked.end());
  all.found.plans = std::move(ranked);
  all.found.lower_bound = min(all.found.lower_bound, all.meshes->lower_bound);
}

// What a search without a mixture of sizes has found, ordered by time: the one to choose.
Estimate choice(const Scenario& s, Evaluator& evaluator, const std::function<bool()>& stopped,
                const Strategies& all) {
  const std::vector<Estimate>& ranked = all.found.plans;
  Estimate chosen = simplest_plan(s, ranked, all.found, evaluator);
  if (!all.layouts || s.search.simpler_within == 0) return chosen;
  const auto fewer =
      fewer_virtual_stages(s, chosen.plan, most_time(ranked.front().iteration, s), stopped);
  const bool simpler = fewer && simplicity(*fewer) < simplicity(chosen.plan);
  return simpler ? evaluator.estimate(*fewer) : chosen;
}

void choose(const Scenario& s, Evaluator& evaluator, const std::function<bool()>& stopped,
            Strategies& all) {
  std::vector<Estimate>& ranked = all.found.plans;
  if (ranked.empty()) return;
  const Estimate chosen = choice(s, evaluator, stopped, all);
  // Fewer virtual stages may turn out faster too: about their layouts nothing is proved.
  if (ranked.front().iteration < chosen.iteration) all.fastest = ranked.front();
  all.found.lower_bound = min(all.found.lower_bound, chosen.iteration);
  ranked = chosen_first(std::move(ranked), chosen, s);
}

// The integer program for the ranking's plans, the chosen one first, but for those whose ZeRO it
// does not price: in groups of shards, and ZeRO++. What it finds enters the ranking as a plan where
// that is faster.
void add_shardings(const Scenario& s, Evaluator& evaluator, const std::function<bool()>& stopped,
                   Strategies& all) {
  std::vector<Estimate>& ranked = all.found.plans;
  const Estimate chosen = choice(s, evaluator, stopped, all);
  for (const Estimate& plan : chosen_first(all.layouts->plans, chosen, s)) {
    const bool plain =
        plan.plan.dp_replicate == 1 && !plan.plan.zero_plus_plus.any() && !plan.plan.offload.any();
    if (!plan.plan.even() || !plain || (all.sharded > 0 && stopped())) continue;
    ShardedStage found = shard_plan(s, plan, evaluator, stopped);
    ++all.sharded;
    const bool ahead = found.better && found.estimate->iteration < ranked.front().iteration;
    if (ahead) {
      ranked.insert(ranked.begin(), *found.estimate);
      all.found.lower_bound = min(all.found.lower_bound, found.estimate->iteration);
    }
    if (ahead || !all.sharding) all.sharding = std::move(found);
  }
  if (ranked.size() > at(s.search.top)) ranked.erase(ranked.begin() + s.search.top, ranked.end());
}

// Fills `all` with the searches' results, their plans ordered by time.
void search_uniform(const Scenario& scenario, Reach reach, int threads,
                    const std::function<bool()>& stopped, const std::function<bool()>& interrupted,
                    std::uint64_t effort, Evaluator& evaluator, Strategies& all) {
  all.found = search(scenario, evaluator, interrupted);
  all.even = all.found.plans;
  if (reach == Reach::even || all.found.expired) return;
  all.layouts = search_layouts(scenario, all.found, threads, stopped, effort);
  all.found.plans = all.layouts->plans;
  all.found.lower_bound = all.layouts->lower_bound;
  all.two_stacks = scenario.model.encoder_decoder();
  all.mtp_layers = scenario.model.mtp_layers;
  if (reach == Reach::layouts) return;
  if (scenario.cluster.devices <= most_mesh_devices && can_search_meshes(scenario))
    add_own_sizes(scenario, threads, stopped, all);
  const bool cut = interrupted && interrupted();
  // Their stages are not cut by operators.
  const bool frozen = scenario.training.fine_tuning.adapts() || scenario.model.towers != nullptr;
  if (reach == Reach::sizes || all.layouts->plans.empty() || all.two_stacks || frozen || cut)
    return;
  add_shardings(scenario, evaluator, stopped, all);
}

}  // namespace

Strategies run_strategies(const Scenario& written, Reach reach, int threads,
                          const std::function<bool()>& expired,
                          const std::function<bool()>& interrupted, std::uint64_t effort) {
  const std::function<bool()> stopped = [&] {
    return (expired && expired()) || (interrupted && interrupted());
  };
  Strategies all;
  if (reach == Reach::meshes) {
    search_apart(written, threads, stopped, all);
    return all;
  }
  // Layouts, meshes and shardings start from what is ranked: however few rows are asked for, the
  // answer is the same.
  Scenario scenario = written;
  if (reach != Reach::even) scenario.search.top = std::max(written.search.top, SearchLimits{}.top);
  Evaluator evaluator(scenario.model, scenario.cluster, scenario.training);
  search_uniform(scenario, reach, threads, stopped, interrupted, effort, evaluator, all);
  choose(scenario, evaluator, stopped, all);
  std::vector<Estimate>& ranked = all.found.plans;
  if (ranked.size() > at(written.search.top))
    ranked.erase(ranked.begin() + written.search.top, ranked.end());
  return all;
}

std::optional<Estimate> chosen_plan(const Scenario& scenario, const SearchMethod& method,
                                    const std::function<bool()>& stopped) {
  Strategies all = run_strategies(scenario, method.reach.value_or(usual_reach(scenario)),
                                  method.threads, {}, stopped, method.effort);
  if (all.found.plans.empty() || (stopped && stopped())) return std::nullopt;
  return std::move(all.found.plans.front());
}

namespace {

std::vector<Estimate> others_of(const Scenario& scenario, const ParallelPlan& plan, Reach reach,
                                const std::function<bool()>& stopped) {
  Scenario s = scenario;
  s.plan.tp = plan.tp;
  s.plan.pp = plan.pp;
  s.plan.dp = plan.dp;
  s.plan.cp = plan.cp;
  s.plan.ep = plan.ep;
  s.search.rows = RankingRows::plans;
  s.search.simpler_within = 0;
  std::vector<Estimate> members = run_strategies(s, reach, 1, {}, stopped).found.plans;
  std::erase_if(members, [&](const Estimate& e) { return e.plan == plan; });
  return members;
}

}  // namespace

FamilyMembers family_members(const Scenario& s, const std::vector<Estimate>& ranked,
                             const SearchMethod& method, const std::function<bool()>& stopped) {
  const Reach asked = method.reach.value_or(usual_reach(s));
  const Reach reach = asked == Reach::even ? Reach::even : Reach::layouts;
  FamilyMembers all(ranked.size());
  share_out(ranked.size(), method.threads, [&](std::size_t i) {
    const bool over = stopped && stopped();
    if (ranked[i].plan.even() && !over) all[i] = others_of(s, ranked[i].plan, reach, stopped);
  });
  return all;
}

}  // namespace planner
