#include "planner/search/settled_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "costmodel/base/error.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "planner/search/serving_search.hpp"
#include "planner/search/strategy.hpp"

namespace planner {

using namespace costmodel;

namespace {

// The stack's layout of layers that do not divide, if it is not the scenario's own.
std::vector<std::string> layout_notes(const Scenario& scenario, const ParallelPlan& plan) {
  const auto& layers = plan.stage_layers;
  const bool chosen = !scenario.plan.stage_layers.empty() || scenario.plan.is_auto("stage_layers");
  if (layers.empty() || chosen) return {};
  return {fmt::format("plan: {} layers do not divide into {} stages; {} lays them out as [{}]",
                      scenario.model.layers, layers.size(), scenario.training.stack.name,
                      fmt::join(layers, ", "))};
}

std::vector<std::string> shard_notes(const Scenario& scenario, const ParallelPlan& plan) {
  if (plan.dp_replicate == 1 || scenario.plan.is_written("dp_replicate")) return {};
  return {
      fmt::format("plan: no dp_replicate is written; {} keeps ZeRO's shards within a node: {} "
                  "groups",
                  scenario.training.stack.name, plan.dp_replicate)};
}

// Without a plan each device has all of the model, which is seldom what is wanted of several.
std::vector<std::string> unwritten_notes(const Scenario& scenario) {
  const bool can_split =
      scenario.cluster.devices > 1 && !scenario.training.stack.offers.data_parallel_only;
  if (!scenario.plan.written.empty() || !can_split) return {};
  return {"plan: no key is written, so tp, pp, cp and ep are 1; `--set plan=auto` searches"};
}

// Stages are even unless their layers are left to the search too.
Reach reach_of(const Scenario& open) {
  const Reach usual = usual_reach(open);
  return usual == Reach::meshes || open.plan.is_auto("stage_layers") ? usual : Reach::even;
}

std::string nothing_fits_note(const Scenario& open, Bytes least) {
  const std::string keys = fmt::format("{}", fmt::join(open.plan.automatic, ", "));
  if (least > open.cluster.device.memory) {
    return fmt::format("plan: no choice of {} fits in memory; this is the one that needs least",
                       keys);
  }
  return fmt::format(
      "plan: no choice of {} leaves {:.3g} % of device memory free ({}); this is the one that "
      "needs "
      "least",
      keys, 100 * open.search.memory_margin, margin_key(open.search));
}

// Whether a plan is of use, asked of so many that a search ends: of fewer where the reason is
// always the same, as of a model, whatever its plan.
struct Usable {
  const PlanRefusal& refusal;
  std::string reason = {};
  int refused = 0;
  bool one_reason = true;

  bool operator()(const ParallelPlan& plan) {
    const std::string why = refusal(plan);
    if (why.empty()) return true;
    if (++refused > 1) one_reason = one_reason && why == reason;
    reason = why;
    return false;
  }
  bool in_vain() const { return refused >= (one_reason ? 1'000 : 20'000); }
};

// The fastest that is not refused: of a ranking, in which any layout may stand, and of all even
// plans. Empty where all of these are refused.
std::optional<Estimate> fastest_of_use(Scenario open, Reach reach, int threads,
                                       const PlanRefusal& refusal) {
  constexpr int most_ranked = 64;
  Usable usable{refusal};
  open.search.simpler_within = 0;
  open.search.top = most_ranked;
  std::vector<Estimate> found;
  if (reach != Reach::even) found = run_strategies(open, reach, threads, {}).found.plans;
  std::erase_if(found, [&](const Estimate& e) { return !usable(e.plan); });
  open.search.top = 1;
  if (reach != Reach::meshes) {
    Evaluator evaluator(open.model, open.cluster, open.training);
    const auto takes = [&](const ParallelPlan& plan) { return usable(plan); };
    const auto in_vain = [&] { return usable.in_vain(); };
    for (Estimate& even : search(open, evaluator, in_vain, {takes}).plans)
      found.push_back(std::move(even));
  }
  const auto best = std::ranges::min_element(found, {}, &Estimate::iteration);
  return best == found.end() ? std::nullopt : std::optional(*best);
}

// The chosen plan, or where it is refused, the fastest that is not, with a note.
SettledPlan of_use(const Estimate& chosen, const Scenario& open, Reach reach, int threads,
                   const PlanRefusal& refusal) {
  SettledPlan first{chosen.plan, false, {}};
  const std::string why = refusal ? refusal(chosen.plan) : "";
  const auto other = why.empty() ? std::nullopt : fastest_of_use(open, reach, threads, refusal);
  if (!other) return first;
  return {other->plan,
          false,
          {fmt::format(
              "plan: the fastest is refused ({}); this is the next that is not, {:.1f} % slower",
              why, 100 * (other->iteration / chosen.iteration - 1))}};
}

}  // namespace

std::optional<SettledPlan> settled_plan(const Scenario& scenario, int threads,
                                        const PlanRefusal& refusal) {
  Scenario open = scenario;
  open.plan = with_defaults(scenario);
  if (open.plan.automatic.empty()) {
    const ParallelPlan plan = resolve_plan(scenario);
    std::vector<std::string> notes = unwritten_notes(scenario);
    for (auto& note : layout_notes(scenario, plan)) notes.push_back(std::move(note));
    for (auto& note : shard_notes(scenario, plan)) notes.push_back(std::move(note));
    return SettledPlan{plan, false, std::move(notes)};
  }
  if (!stages_alike(open) && !can_search_meshes(open)) {
    throw ConfigError(
        scenario.plan.mark_of(open.plan.automatic.front()),
        fmt::format("{}: on several kinds of devices auto is searched for the whole plan only",
                    open.plan.automatic.front()),
        "give it a value, or write plan: auto");
  }
  require_offered(scenario);
  const Reach reach = reach_of(open);
  // Whatever the ranking holds, its first is the same.
  if (reach == Reach::even) open.search.top = 1;
  const Strategies all = run_strategies(open, reach, threads, {});
  if (!all.found.plans.empty()) {
    SettledPlan found = of_use(all.found.plans.front(), open, reach, threads, refusal);
    for (auto& note : layout_notes(scenario, found.plan)) found.notes.push_back(std::move(note));
    return found;
  }
  if (!all.found.leanest) {
    // Its keys at their defaults break a rule less likely than any others.
    if (stages_alike(open)) resolve_plan(scenario);
    return {};
  }
  SettledPlan leanest{*all.found.leanest, true, layout_notes(scenario, *all.found.leanest)};
  leanest.notes.push_back(nothing_fits_note(open, all.found.leanest_peak));
  return leanest;
}

std::optional<SettledPlan> settled_run(Scenario scenario) {
  scenario.search.memory_margin = 0;
  // Who published it took what was fastest.
  scenario.search.simpler_within = 0;
  return settled_plan(scenario);
}

std::optional<ServingScenario> settled_serving(const ServingScenario& s) {
  const bool open = !s.plan.tp && !s.plan.pp && !s.plan.ep && !s.plan.disaggregation;
  if (!open && !s.serving.weights_open) return s;
  const ServingSearch found = search_serving(s, usually_ranked);
  if (found.best.empty()) return std::nullopt;
  return best_served(s, found);
}

}  // namespace planner
