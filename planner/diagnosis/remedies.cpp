#include "planner/diagnosis/remedies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>
#include <utility>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/plan/plan_text.hpp"
#include "planner/search/search_space.hpp"

namespace planner {

using costmodel::Estimate;
using costmodel::Evaluator;
using costmodel::format_integer;
using costmodel::ParallelPlan;
using costmodel::Recomputation;
using costmodel::Scenario;

namespace {

std::string largest_part(const costmodel::StageMemory& s) {
  std::pair<const char*, costmodel::Bytes> largest{"weights", s.weights};
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

// Fixed sizes replace the usual ones; a fixed dp leaves the rest to tp and pp.
void settle_sizes(const Scenario& s, int tp, int pp, ParallelPlan& plan) {
  plan.cp = s.plan.cp.value_or(1);
  plan.tp = s.plan.tp.value_or(tp);
  plan.pp = s.plan.pp.value_or(pp);
  if (!s.plan.dp) {
    const std::int64_t model_parallel = std::int64_t{plan.tp} * plan.pp * plan.cp;
    plan.dp = static_cast<int>(std::max<std::int64_t>(1, s.cluster.devices / model_parallel));
    return;
  }
  plan.dp = *s.plan.dp;
  const std::int64_t rest =
      std::max<std::int64_t>(1, s.cluster.devices / (std::int64_t{plan.dp} * plan.cp));
  if (!s.plan.tp)
    plan.tp = static_cast<int>(std::gcd(std::int64_t{tp}, s.plan.pp ? rest / *s.plan.pp : rest));
  if (!s.plan.pp) plan.pp = static_cast<int>(std::max<std::int64_t>(1, rest / plan.tp));
}

// The plans people try first: one node wide, then with pipeline, with and without recomputation.
std::vector<ParallelPlan> popular(const Scenario& s) {
  std::vector<ParallelPlan> plans;
  const int node = static_cast<int>(std::min(s.cluster.devices_per_node, s.cluster.devices));
  for (const auto& [tp, pp, zero] :
       {std::tuple{1, 1, s.training.stack.offers.max_zero}, std::tuple{node, 1, 1},
        std::tuple{node, 4, 1}, std::tuple{node, 8, 1}}) {
    ParallelPlan plan;
    settle_sizes(s, tp, pp, plan);
    if (plan.cp > 1) plan.cp_comm = s.plan.cp_comm.value_or(plan.cp_comm);
    plan.sequence_parallel = s.plan.sequence_parallel.value_or(s.model.experts > 0 && plan.tp > 1);
    if (s.plan.tp == 1) plan.sequence_parallel = false;
    plan.ep = s.plan.ep.value_or(plan.ep);
    plan.etp = s.plan.etp.value_or(plan.etp);
    const std::int64_t model_parallel = std::int64_t{plan.tp} * plan.pp * plan.cp;
    const bool chosen_by_user = s.plan.tp || s.plan.pp || s.plan.cp || s.plan.dp;
    if (s.cluster.devices % model_parallel != 0 && !chosen_by_user) continue;
    const int usual_zero =
        plan.replicas() > 1 ? std::min(zero, s.training.stack.offers.max_zero) : 0;
    plan.zero = s.plan.zero.value_or(usual_zero);
    plan.micro_batch = s.plan.micro_batch.value_or(plan.micro_batch);
    plan.recompute = s.plan.recompute.value_or(costmodel::Recompute{Recomputation::full, 0});
    plans.push_back(plan);
  }
  return plans;
}

// A diagnosis under way.
struct Attempts : Diagnosis {
  const std::function<bool()>& stopped;
};

// Records a changed scenario as a remedy if something fits in it; returns whether it does.
bool try_change(Scenario changed, const std::string& what, Attempts& diagnosis) {
  changed.search.top = 1;
  Evaluator evaluator(changed.model, changed.cluster, changed.training);
  const SearchResult found = search(changed, evaluator, diagnosis.stopped);
  if (found.plans.empty()) return false;
  const Estimate& best = found.plans.front();
  diagnosis.remedies.push_back(fmt::format("{}: {} fits in {} and takes {}", what,
                                           to_string(best.plan), format_bytes(best.peak),
                                           format_seconds(best.iteration)));
  return true;
}

void free_keys(const Scenario& s, Attempts& diagnosis) {
  const auto freed = [&](const char* key, auto request) {
    if (!(s.plan.*request)) return;
    Scenario changed = s;
    (changed.plan.*request).reset();
    try_change(changed, fmt::format("free plan.{}", key), diagnosis);
  };
  // The product of the sizes is the number of devices: when all are fixed, two must change.
  const auto freed_size = [&](const char* key, auto request) {
    if (!(s.plan.*request)) return;
    Scenario changed = s;
    (changed.plan.*request).reset();
    if (try_change(changed, fmt::format("free plan.{}", key), diagnosis) || !s.plan.dp) return;
    changed.plan.dp.reset();
    try_change(changed, fmt::format("free plan.{} and plan.dp", key), diagnosis);
  };
  freed("recompute", &costmodel::PlanRequest::recompute);
  freed("micro_batch", &costmodel::PlanRequest::micro_batch);
  freed("zero", &costmodel::PlanRequest::zero);
  freed("sequence_parallel", &costmodel::PlanRequest::sequence_parallel);
  freed_size("pp", &costmodel::PlanRequest::pp);
  freed_size("cp", &costmodel::PlanRequest::cp);
  freed("ep", &costmodel::PlanRequest::ep);
  freed_size("tp", &costmodel::PlanRequest::tp);
  freed("dp", &costmodel::PlanRequest::dp);
}

std::string devices_remedy(const Scenario& s, std::int64_t devices) {
  return fmt::format("{} devices instead of {}", format_integer(devices),
                     format_integer(s.cluster.devices));
}

// The fewest devices, doubled in each step, with which a plan exists.
void more_devices(const Scenario& s, Attempts& diagnosis) {
  constexpr int most = 64;
  for (int factor = 2; factor <= most && s.cluster.devices * factor <= 1'000'000; factor *= 2) {
    Scenario changed = s;
    changed.cluster = resized(s.cluster, s.cluster.devices * factor);
    if (!changed.cluster.assumed.empty()) {
      const std::int64_t described = s.cluster.known_tiers.back().devices;
      diagnosis.tried.push_back(
          fmt::format("no more than {} devices: the cluster's description ends at {}",
                      format_integer(s.cluster.devices * factor / 2), format_integer(described)));
      return;
    }
    if (try_change(changed, devices_remedy(s, changed.cluster.devices), diagnosis)) return;
    if (!s.plan.dp) continue;
    changed.plan.dp.reset();
    if (try_change(changed, devices_remedy(s, changed.cluster.devices) + " and plan.dp freed",
                   diagnosis))
      return;
  }
  diagnosis.tried.push_back(fmt::format("up to {} times the devices", most));
}

// Half of an even number; of an odd one the power of two below, 0 of 1.
std::int64_t half(std::int64_t n) {
  return n % 2 == 0 ? n / 2 : static_cast<std::int64_t>(std::bit_floor(std::uint64_t(n - 1)));
}

// The largest number of devices, about halved in each step, that the rules allow for this batch; in
// multiples of the product of the fixed sizes.
void fewer_devices(const Scenario& s, Attempts& diagnosis) {
  ParallelPlan fixed;
  fixed.tp = s.plan.tp.value_or(1);
  fixed.pp = s.plan.pp.value_or(1);
  fixed.cp = s.plan.cp.value_or(1);
  fixed.dp = s.plan.dp.value_or(1);
  const std::int64_t unit = fixed.devices();
  std::int64_t units = s.cluster.devices / unit;
  if (units * unit == s.cluster.devices) units = half(units);
  for (; units > 0; units = half(units)) {
    const std::int64_t n = units * unit;
    Scenario changed = s;
    changed.cluster = resized(s.cluster, n);
    if (try_change(changed, fmt::format("fewer devices: cluster.devices={}", n), diagnosis)) return;
  }
  diagnosis.tried.emplace_back("fewer devices");
}

// The batch nearest to the requested one that some number of devices divides.
void nearest_batch(const Scenario& s, Attempts& diagnosis) {
  const std::int64_t model_parallel =
      std::int64_t{s.plan.tp.value_or(1)} * s.plan.pp.value_or(1) * s.plan.cp.value_or(1);
  const std::int64_t micro_batch = s.plan.micro_batch.value_or(1);
  const std::int64_t replicas = std::max<std::int64_t>(1, s.cluster.devices / model_parallel);
  const std::int64_t wanted = s.training.global_batch;
  for (const std::int64_t dp : divisors(s.plan.dp ? *s.plan.dp : replicas)) {
    if (s.plan.dp && dp != *s.plan.dp) continue;
    const std::int64_t share = dp * micro_batch;
    const std::int64_t nearest = std::max(share, (wanted + share / 2) / share * share);
    if (nearest == wanted) continue;
    Scenario changed = s;
    changed.training.global_batch = nearest;
    const std::string what = fmt::format("another batch: training.global_batch={}", nearest);
    if (try_change(changed, what, diagnosis)) return;
  }
  diagnosis.tried.emplace_back("another batch");
}

void half_sequence(const Scenario& s, Attempts& diagnosis) {
  if (s.training.sequence < 2) return;
  diagnosis.tried.emplace_back("half the sequence");
  Scenario changed = s;
  changed.training.sequence /= 2;
  try_change(
      changed,
      fmt::format("sequence {} instead of {}", changed.training.sequence, s.training.sequence),
      diagnosis);
}

}  // namespace

Diagnosis diagnose(const Scenario& s, const SearchResult& failed,
                   const std::function<bool()>& stopped) {
  Attempts diagnosis{{}, stopped};
  Evaluator evaluator(s.model, s.cluster, s.training);
  for (const ParallelPlan& plan : popular(s)) {
    const auto broken = violations(plan, s.model, s.cluster, s.training);
    if (broken.empty() && evaluator.cost(plan).peak <= memory_limit(s))
      continue;  // fits: other keys rule it out
    const std::string line = broken.empty()
                                 ? shortage(plan, evaluator)
                                 : fmt::format("{}: {}", to_string(plan), broken.front().reason);
    if (std::find(diagnosis.obstacles.begin(), diagnosis.obstacles.end(), line) ==
        diagnosis.obstacles.end())
      diagnosis.obstacles.push_back(line);
  }
  if (failed.leanest) {
    const std::string line = shortage(*failed.leanest, evaluator);
    std::erase(diagnosis.obstacles, line);
    diagnosis.obstacles.push_back("the leanest of all, " + line);
  }
  diagnosis.tried.emplace_back("freeing a fixed key");
  free_keys(s, diagnosis);
  more_devices(s, diagnosis);
  if (failed.statistics.configurations == 0) {  // it is not memory that lacks
    fewer_devices(s, diagnosis);
    nearest_batch(s, diagnosis);
  }
  half_sequence(s, diagnosis);
  if (stopped && stopped()) diagnosis.tried = {"not all, for it was interrupted"};
  return diagnosis;
}

}  // namespace planner
