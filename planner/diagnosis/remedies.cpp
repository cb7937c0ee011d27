#include "planner/diagnosis/remedies.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/plan/plan_text.hpp"
#include "planner/diagnosis/attempts.hpp"
#include "planner/diagnosis/reason.hpp"
#include "planner/diagnosis/size_changes.hpp"
#include "planner/diagnosis/training_changes.hpp"
#include "planner/diagnosis/widened_search.hpp"

namespace planner {

using namespace costmodel;

namespace {

std::string largest_part(const StageMemory& s) {
  std::pair<const char*, Bytes> largest{"weights", s.weights};
  for (const auto& part :
       {std::pair{"gradients", s.gradients}, std::pair{"optimizer states", s.optimizer},
        std::pair{"activations", s.activations}, std::pair{"buffers", s.buffers}}) {
    if (part.second > largest.second) largest = part;
  }
  return fmt::format("{} {}", largest.first, format_bytes(largest.second));
}

std::string shortage(const ParallelPlan& plan, Evaluator& evaluator) {
  const auto& cost = evaluator.cost(plan);
  return fmt::format("{}: stage {} needs {} of {} ({})", to_string(plan), cost.fullest,
                     format_bytes(cost.peak), format_bytes(evaluator.cluster().device.memory),
                     largest_part(cost.ranks[cost.fullest].memory));
}

// What keeps a plan from being one of the search; "": other keys do.
std::string obstacle_of(const ParallelPlan& plan, const Scenario& s, Evaluator& evaluator) {
  const auto broken = violations(plan, s.model, s.cluster, s.training);
  if (!broken.empty()) return fmt::format("{}: {}", to_string(plan), broken.front().reason);
  if (evaluator.cost(plan).peak > memory_limit(s)) return shortage(plan, evaluator);
  const auto wider = widened_search(s.search, plan);
  if (wider.empty()) return "";
  return fmt::format("{}: fits, with {}", to_string(plan), fmt::join(wider, ", "));
}

// Fixed sizes replace the usual ones; a fixed dp leaves the rest to tp and pp.
void settle_sizes(const ClusterSpec& cluster, int tp, int pp, PlanRequest& plan) {
  const PlanRequest written = plan;
  const int cp = written.cp.value_or(1);
  plan.tp = written.tp.value_or(tp);
  plan.pp = written.pp.value_or(pp);
  if (!written.dp) return;  // what is left
  const std::int64_t rest =
      std::max<std::int64_t>(1, cluster.devices / (std::int64_t{*written.dp} * cp));
  if (!written.tp)
    plan.tp = static_cast<int>(std::gcd(std::int64_t{tp}, written.pp ? rest / *written.pp : rest));
  if (!written.pp) plan.pp = static_cast<int>(std::max<std::int64_t>(1, rest / *plan.tp));
}

// The plans people try first: one node wide, then with pipeline, with recomputation; every key that
// is written as it is written.
std::vector<ParallelPlan> popular(const Scenario& s) {
  std::vector<ParallelPlan> plans;
  const int node = static_cast<int>(std::min(s.cluster.devices_per_node, s.cluster.devices));
  for (const auto& [tp, pp, zero] :
       {std::tuple{1, 1, s.training.stack.offers.max_zero}, std::tuple{node, 1, 1},
        std::tuple{node, 4, 1}, std::tuple{node, 8, 1}}) {
    Scenario tried = s;
    PlanRequest& r = tried.plan;
    settle_sizes(s.cluster, tp, pp, r);
    if (!r.sequence_parallel) r.sequence_parallel = s.model.experts > 0;
    if (!r.recompute) r.recompute = Recompute{Recomputation::full, 0};
    const int usual_zero = std::min(zero, s.training.stack.offers.max_zero);
    if (!r.zero) r.zero = unchecked_plan(tried).replicas() > 1 ? usual_zero : 0;
    const ParallelPlan plan = unchecked_plan(tried);
    const std::int64_t model_parallel = std::int64_t{plan.tp} * plan.pp * plan.cp;
    const bool chosen_by_user = s.plan.tp || s.plan.pp || s.plan.cp || s.plan.dp;
    if (s.cluster.devices % model_parallel != 0 && !chosen_by_user) continue;
    plans.push_back(plan);
  }
  return plans;
}

void no_margin(const Scenario& s, Attempts& diagnosis) {
  if (s.search.memory_margin == 0) return;
  Scenario changed = s;
  changed.search.memory_margin = 0;
  const std::string all =
      s.search.memory_confidence ? "search.memory_confidence=0" : "search.memory_margin=0";
  try_change(changed, "all of the memory: " + all, {all}, diagnosis);
}

void free_keys(const Scenario& s, Attempts& diagnosis) {
  const auto freed = [&](const char* key, auto request) {
    if (!(s.plan.*request)) return;
    Scenario changed = s;
    (changed.plan.*request).reset();
    try_change(changed, fmt::format("free plan.{}", key), {fmt::format("plan.{}=auto", key)},
               diagnosis);
  };
  // The product of the sizes is the number of devices: when all are fixed, two must change.
  const auto freed_size = [&](const char* key, auto request) {
    if (!(s.plan.*request)) return;
    Scenario changed = s;
    (changed.plan.*request).reset();
    const std::string set = fmt::format("plan.{}=auto", key);
    if (try_change(changed, fmt::format("free plan.{}", key), {set}, diagnosis) || !s.plan.dp)
      return;
    changed.plan.dp.reset();
    try_change(changed, fmt::format("free plan.{} and plan.dp", key), {set, "plan.dp=auto"},
               diagnosis);
  };
  freed("recompute", &PlanRequest::recompute);
  freed("micro_batch", &PlanRequest::micro_batch);
  freed("zero", &PlanRequest::zero);
  freed("sequence_parallel", &PlanRequest::sequence_parallel);
  freed_size("pp", &PlanRequest::pp);
  freed_size("cp", &PlanRequest::cp);
  freed("ep", &PlanRequest::ep);
  freed_size("tp", &PlanRequest::tp);
  freed("dp", &PlanRequest::dp);
  freed("dp_replicate", &PlanRequest::dp_replicate);
  freed("vpp", &PlanRequest::vpp);
  freed("schedule", &PlanRequest::schedule);
}

// Without the limits of the search; of these, those that leave the plan out which is found.
void widen_search(const Scenario& s, Attempts& diagnosis) {
  Scenario changed = s;
  changed.search = without_limits(s.search);
  auto best = best_plan_of(changed, diagnosis);
  if (!best) return;
  Settings settings = widened_search(s.search, best->plan);
  if (settings.empty()) return;
  const std::string what = fmt::format("a wider search: {}", fmt::join(settings, ", "));
  add_remedy(what, std::move(settings), changed, *std::move(best), diagnosis);
}

// Of what comes to the same, as a module recomputed by its own name, the first stays.
void cheapest_first(std::vector<Remedy>& remedies) {
  std::ranges::stable_sort(remedies, {}, &Remedy::device_time);
  const auto of_plan = [](const Remedy& r) {
    return std::ranges::all_of(r.settings, [](const auto& s) { return s.starts_with("plan."); });
  };
  const auto same = [&](const Remedy& a, const Remedy& b) {
    return of_plan(a) && of_plan(b) && a.device_time == b.device_time && a.best.peak == b.best.peak;
  };
  remedies.erase(std::unique(remedies.begin(), remedies.end(), same), remedies.end());
}

// The keys of the plan, each moved to the nearest value that fits.
void nearest_sizes(const Estimate& estimate, const Scenario& s, Attempts& diagnosis) {
  if (!estimate.plan.even()) return;
  Evaluator evaluator(s.model, s.cluster, s.training);
  for (const Step& step : one_step_away(estimate, s, evaluator, StepLength::fitting)) {
    add_remedy(fmt::format("{} {}", step.knob, step.change), {}, s, evaluator.estimate(step.plan),
               diagnosis);
  }
}

// Changes of what is trained, of the devices, of the sequence.
void change_scenario(const Scenario& s, Attempts& attempts) {
  change_training(s, attempts);
  more_devices(s, attempts);
  half_sequence(s, attempts);
}

// With the plan as it is, but for one key.
void add_single_changes(const Estimate& estimate, Scenario s, Attempts& attempts) {
  attempts.own = &estimate.plan;
  s.plan.etp = estimate.plan.etp;
  s.plan.recompute = estimate.plan.recompute;
  nearest_sizes(estimate, s, attempts);
  change_scenario(s, attempts);
  attempts.own = nullptr;
}

// The best plan of the scenario, or where nothing fits, of the scenario changed.
void add_other_plans(Scenario s, Attempts& attempts) {
  s.plan = {};
  try_change(s, "all keys chosen anew (`plan` may find better)", {}, attempts);
  if (attempts.remedies.empty()) change_scenario(s, attempts);
}

}  // namespace

std::string Remedy::sentence() const {
  std::string text = fmt::format("{}: {} fits in {} (chance {}) and takes {}", what,
                                 to_string(best.plan), format_bytes(best.peak),
                                 chance_text(probability), format_seconds(best.iteration));
  return command ? text + "; " + command(settings) : text;
}

std::vector<std::string> sentences_of(const std::vector<Remedy>& remedies) {
  std::vector<std::string> lines;
  for (const Remedy& remedy : remedies) lines.push_back(remedy.sentence());
  return lines;
}

std::vector<Remedy> fitting_changes(const Estimate& estimate, const Scenario& scenario,
                                    const OtherStacks& stacks,
                                    const std::function<bool()>& stopped) {
  const ParallelPlan& plan = estimate.plan;
  const bool one_size =
      plan.stages.empty() && plan.replica_groups.empty() && estimate.meshes.empty();
  if (estimate.fits() || !one_size) return {};
  Attempts attempts{{}, stopped, stacks, scenario.plan, &estimate.plan};
  Scenario s = scenario;
  for (const double margin : {scenario.search.memory_margin, 0.0}) {  // tightly, if not otherwise
    s.search.memory_margin = margin;
    add_single_changes(estimate, s, attempts);
    add_other_plans(s, attempts);
    if (!attempts.remedies.empty()) break;
  }
  cheapest_first(attempts.remedies);
  return std::move(attempts.remedies);
}

Diagnosis diagnose(const Scenario& s, const SearchResult& failed, const OtherStacks& stacks,
                   const std::function<bool()>& stopped) {
  Attempts diagnosis{{}, stopped, stacks, s.plan};
  Evaluator evaluator(s.model, s.cluster, s.training);
  for (const ParallelPlan& plan : popular(s)) {
    const std::string line = obstacle_of(plan, s, evaluator);
    if (!line.empty() && std::ranges::find(diagnosis.obstacles, line) == diagnosis.obstacles.end())
      diagnosis.obstacles.push_back(line);
  }
  if (failed.leanest) {
    const std::string line = shortage(*failed.leanest, evaluator);
    std::erase(diagnosis.obstacles, line);
    diagnosis.obstacles.push_back("the leanest of all, " + line);
  }
  const bool memory_lacks = failed.statistics.configurations > 0;
  if (memory_lacks) no_margin(s, diagnosis);
  diagnosis.tried.emplace_back("freeing a fixed key");
  free_keys(s, diagnosis);
  widen_search(s, diagnosis);
  if (memory_lacks) change_training(s, diagnosis);
  more_devices(s, diagnosis);
  if (!memory_lacks) {
    fewer_devices(s, diagnosis);
    nearest_batch(s, diagnosis);
  }
  half_sequence(s, diagnosis);
  cheapest_first(diagnosis.remedies);
  if (stopped && stopped()) diagnosis.tried = {"not all, for it was interrupted"};
  return diagnosis;
}

}  // namespace planner
