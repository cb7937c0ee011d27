#include "planner/search/settled_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "costmodel/base/error.hpp"
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

// As many sizes as are asked for one that is of use.
constexpr int most_refused = 64;

SettledPlan fastest_of_use(const std::vector<Estimate>& ranked, const PlanRefusal& refusal) {
  SettledPlan first{ranked.front().plan, false, {}};
  const std::string why = refusal ? refusal(first.plan) : "";
  if (why.empty()) return first;
  for (const Estimate& other : ranked) {
    if (!refusal(other.plan).empty()) continue;
    const double longer = other.iteration / ranked.front().iteration - 1;
    return {other.plan,
            false,
            {fmt::format(
                "plan: the fastest is refused ({}); this is the next that is not, {:.1f} % slower",
                why, 100 * longer)}};
  }
  return first;
}

}  // namespace

std::optional<SettledPlan> settled_plan(const Scenario& scenario, int threads,
                                        const PlanRefusal& refusal) {
  Scenario open = scenario;
  open.plan = with_defaults(scenario);
  if (open.plan.automatic.empty()) {
    const ParallelPlan plan = resolve_plan(scenario);
    return SettledPlan{plan, false, layout_notes(scenario, plan)};
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
  if (refusal) open.search.top = most_refused;
  if (reach == Reach::even && !refusal) open.search.top = 1;
  const Strategies all = run_strategies(open, reach, threads, {});
  if (!all.found.plans.empty()) {
    SettledPlan found = fastest_of_use(all.found.plans, refusal);
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
  return with_choice(s, found.best.front().choice);
}

}  // namespace planner
