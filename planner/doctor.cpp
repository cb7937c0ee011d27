#include "planner/doctor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "costmodel/units_text.hpp"

namespace planner {

using costmodel::Estimate;
using costmodel::Evaluator;
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
  const auto fullest =
      std::max_element(cost.memory.begin(), cost.memory.end(),
                       [](const auto& a, const auto& b) { return a.total() < b.total(); });
  return fmt::format("{}: stage {} needs {} of {} ({})", to_string(plan),
                     fullest - cost.memory.begin(), format_bytes(cost.peak),
                     format_bytes(evaluator.cluster().device.memory), largest_part(*fullest));
}

// The plans people try first: one node wide, then with pipeline, with and without recomputation.
std::vector<ParallelPlan> popular(const Scenario& s) {
  std::vector<ParallelPlan> plans;
  const int node = static_cast<int>(std::min(s.cluster.devices_per_node, s.cluster.devices));
  for (const auto& [tp, pp, zero] :
       {std::tuple{1, 1, s.training.stack.max_zero}, std::tuple{node, 1, 1}, std::tuple{node, 4, 1},
        std::tuple{node, 8, 1}}) {
    ParallelPlan plan;
    plan.tp = s.plan.tp.value_or(tp);
    plan.pp = s.plan.pp.value_or(pp);
    plan.cp = s.plan.cp.value_or(1);
    if (plan.cp > 1) plan.cp_comm = s.plan.cp_comm.value_or(plan.cp_comm);
    plan.sequence_parallel = s.model.experts > 0 && plan.tp > 1;
    plan.ep = s.plan.ep.value_or(plan.ep);
    plan.etp = s.plan.etp.value_or(plan.etp);
    const std::int64_t model_parallel = std::int64_t{plan.tp} * plan.pp * plan.cp;
    const bool chosen_by_user = s.plan.tp || s.plan.pp || s.plan.cp;
    if (s.cluster.devices % model_parallel != 0 && !chosen_by_user) continue;
    plan.dp = static_cast<int>(std::max<std::int64_t>(1, s.cluster.devices / model_parallel));
    const int usual_zero = plan.replicas() > 1 ? std::min(zero, s.training.stack.max_zero) : 0;
    plan.zero = s.plan.zero.value_or(usual_zero);
    plan.micro_batch = s.plan.micro_batch.value_or(plan.micro_batch);
    plan.recompute = s.plan.recompute.value_or(costmodel::Recompute{Recomputation::full, 0});
    plans.push_back(plan);
  }
  return plans;
}

// A changed scenario in which something fits, told as a remedy.
void try_change(const Scenario& changed, const std::string& what, Diagnosis& diagnosis) {
  Evaluator evaluator(changed.model, changed.cluster, changed.training);
  const SearchResult found = search(changed, evaluator);
  if (found.plans.empty()) return;
  const Estimate& best = found.plans.front();
  diagnosis.remedies.push_back(fmt::format("{}: {} fits in {} and takes {}", what,
                                           to_string(best.plan), format_bytes(best.peak),
                                           format_seconds(best.iteration)));
}

void free_keys(const Scenario& s, Diagnosis& diagnosis) {
  const auto freed = [&](const char* key, bool given,
                         const std::function<void(Scenario&)>& release) {
    if (!given) return;
    Scenario changed = s;
    changed.search.top = 1;
    release(changed);
    try_change(changed, fmt::format("free plan.{}", key), diagnosis);
  };
  freed("recompute", s.plan.recompute.has_value(), [](Scenario& c) { c.plan.recompute.reset(); });
  freed("micro_batch", s.plan.micro_batch.has_value(),
        [](Scenario& c) { c.plan.micro_batch.reset(); });
  freed("zero", s.plan.zero.has_value(), [](Scenario& c) { c.plan.zero.reset(); });
  freed("sequence_parallel", s.plan.sequence_parallel.has_value(),
        [](Scenario& c) { c.plan.sequence_parallel.reset(); });
  freed("pp", s.plan.pp.has_value(), [](Scenario& c) {
    c.plan.pp.reset();
    c.plan.dp.reset();
  });
  freed("cp", s.plan.cp.has_value(), [](Scenario& c) {
    c.plan.cp.reset();
    c.plan.dp.reset();
  });
  freed("ep", s.plan.ep.has_value(), [](Scenario& c) { c.plan.ep.reset(); });
  freed("tp", s.plan.tp.has_value(), [](Scenario& c) {
    c.plan.tp.reset();
    c.plan.dp.reset();
  });
}

// The fewest devices (times two, each step) on which the question has an answer.
void more_devices(const Scenario& s, Diagnosis& diagnosis) {
  const std::size_t before = diagnosis.remedies.size();
  for (int factor = 2; factor <= 64 && s.cluster.devices * factor <= 1'000'000; factor *= 2) {
    Scenario changed = s;
    changed.search.top = 1;
    changed.plan.dp.reset();
    changed.cluster = resized(s.cluster, s.cluster.devices * factor);
    if (!changed.cluster.assumed.empty()) return;  // beyond the network that is described
    try_change(
        changed,
        fmt::format("{} devices instead of {}", costmodel::format_integer(changed.cluster.devices),
                    costmodel::format_integer(s.cluster.devices)),
        diagnosis);
    if (diagnosis.remedies.size() > before) return;
  }
}

void other_batch(const Scenario& s, Diagnosis& diagnosis) {
  if (s.training.sequence < 2) return;
  Scenario changed = s;
  changed.search.top = 1;
  changed.training.sequence /= 2;
  try_change(
      changed,
      fmt::format("sequence {} instead of {}", changed.training.sequence, s.training.sequence),
      diagnosis);
}

}  // namespace

Diagnosis diagnose(const Scenario& s, const SearchResult& failed) {
  Diagnosis diagnosis;
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
  if (failed.leanest)
    diagnosis.obstacles.push_back("the leanest of all, " + shortage(*failed.leanest, evaluator));
  free_keys(s, diagnosis);
  more_devices(s, diagnosis);
  other_batch(s, diagnosis);
  return diagnosis;
}

}  // namespace planner
