#include "planner/diagnosis/attempts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "costmodel/estimate/evaluator.hpp"
#include "planner/diagnosis/reason.hpp"
#include "planner/search/strategy.hpp"

namespace planner {

using namespace costmodel;

namespace {

// The part of the space that needs least: entire layers recomputed, a sequence a micro-batch, a
// stage a device. Where nothing fits in it, nothing does (but for what is offloaded), and it is a
// small part.
Scenario leanest_part(Scenario s) {
  s.search.recompute = {Recomputation::full};
  s.search.max_micro_batch = 1;
  if (s.search.schedules.empty()) s.search.max_vpp = 1;  // some have chunks on every rank
  return s;
}

// The plan that is kept in a changed scenario, if it fits there; what the change fixes of it and
// the number of replicas are the scenario's.
std::optional<Estimate> kept_plan(const Scenario& changed, const ParallelPlan& own) {
  ParallelPlan plan = own;
  plan.etp = changed.plan.etp.value_or(plan.etp);
  plan.recompute = changed.plan.recompute.value_or(plan.recompute);
  if (changed.plan.offload.any()) plan.offload = changed.plan.offload;
  const std::int64_t model_parallel = std::int64_t{plan.tp} * plan.pp * plan.cp;
  if (changed.cluster.devices % model_parallel != 0) return {};
  plan.dp = static_cast<int>(changed.cluster.devices / model_parallel);
  if (!is_valid(plan, changed.model, changed.cluster, changed.training)) return {};
  Evaluator evaluator(changed.model, changed.cluster, changed.training);
  if (!evaluator.cost(plan).within(memory_limit(changed))) return {};
  return evaluator.estimate(plan);
}

}  // namespace

std::optional<Estimate> best_plan_of(const Scenario& changed, const Attempts& attempts) {
  if (attempts.stopped && attempts.stopped()) return {};
  if (attempts.own != nullptr) return kept_plan(changed, *attempts.own);
  Evaluator evaluator(changed.model, changed.cluster, changed.training);
  if (search(leanest_part(changed), evaluator, attempts.stopped).plans.empty()) return {};
  const Reach reach = usual_reach(changed);
  return chosen_plan(
      changed,
      {.reach = reach == Reach::meshes ? Reach::even : reach, .effort = usual_effort / 1024},
      attempts.stopped);
}

namespace {

// A batch that was assumed follows from devices and sequence: it is set where they change.
void keep_batch(Settings& settings, const TrainingSpec& training) {
  const auto any = [](const auto& list, const char* start) {
    return std::ranges::any_of(list, [&](const auto& text) { return text.starts_with(start); });
  };
  if (any(training.assumed, "global_batch ") &&
      (any(settings, "cluster.devices=") || any(settings, "training.sequence=")))
    settings.push_back(fmt::format("training.global_batch={}", training.global_batch));
}

// Adds the keys of the plan that make it `best`, each in place of its own setting.
void assign_plan(Settings& settings, const Scenario& changed, const ParallelPlan& best,
                 const Attempts& attempts) {
  for (std::string& setting : plan_assignments(attempts.asked, *attempts.from, best, changed)) {
    const std::string key = setting.substr(0, setting.find('=') + 1);
    std::erase_if(settings, [&](const std::string& other) { return other.starts_with(key); });
    settings.push_back(std::move(setting));
  }
}

}  // namespace

void add_remedy(const std::string& what, Settings settings, const Scenario& changed, Estimate best,
                Attempts& attempts) {
  keep_batch(settings, changed.training);
  if (attempts.from != nullptr) assign_plan(settings, changed, best.plan, attempts);
  const auto tokens =
      static_cast<double>(changed.training.global_batch * changed.training.tokens());
  const Seconds time = best.iteration * (static_cast<double>(changed.cluster.devices) / tokens);
  const double probability =
      fits_probability(best.peak, best.capacity, changed.training.peak_errors);
  attempts.remedies.push_back(
      {what, std::move(settings), std::move(best), probability, time, attempts.stacks.command});
}

bool try_change(const Scenario& changed, const std::string& what, Settings settings,
                Attempts& attempts) {
  auto best = best_plan_of(changed, attempts);
  const bool fits = best.has_value();
  if (fits) add_remedy(what, std::move(settings), changed, *std::move(best), attempts);
  return fits;
}

void Quickest::offer(std::optional<Estimate> plan, const std::string& name, const Settings& set,
                     const Scenario& changed) {
  if (!plan || (best && best->iteration <= plan->iteration)) return;
  best = std::move(plan);
  what = name;
  settings = set;
  scenario = changed;
}

void Quickest::record_in(Attempts& attempts) const {
  if (best) add_remedy(what, settings, *scenario, *best, attempts);
}

}  // namespace planner
