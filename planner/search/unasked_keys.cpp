#include "planner/search/unasked_keys.hpp"

#include <optional>
#include <string>
#include <utility>

#include "costmodel/base/parallel_for.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "planner/search/grid_search.hpp"

namespace planner {

using namespace costmodel;

std::vector<std::string_view> unasked_keys(const Scenario& s) {
  const StackOffers& offers = s.training.stack.offers;
  const bool offload = offers.optimizer_offload || offers.parameter_offload ||
                       offers.layer_offload || offers.module_offload;
  std::vector<std::string_view> keys;
  if (offload && !s.plan.offload.any() && !s.plan.is_written("offload"))
    keys.emplace_back("offload");
  if (offers.hybrid_sharding && s.cluster.devices > 2 && !s.plan.is_written("dp_replicate"))
    keys.emplace_back("dp_replicate");
  return keys;
}

namespace {

// Families of plans that are looked at for one key: a second or two.
constexpr int most_families = 100'000;

// The fastest even plan that uses the key and takes less than `below`; `cut` where that was not
// found out.
std::optional<Estimate> fastest_with(Scenario s, std::string_view key, Seconds below,
                                     const std::function<bool()>& stopped, bool& cut) {
  s.plan.automatic.emplace_back(key);
  s.search.top = 1;
  Evaluator evaluator(s.model, s.cluster, s.training);
  const bool offload = key == "offload";
  const PlanFilter uses = [offload](const ParallelPlan& plan) {
    return offload ? plan.offload.any() : plan.dp_replicate > 1;
  };
  int asked = 0;
  const auto expired = [&] { return ++asked > most_families || (stopped && stopped()); };
  SearchResult found = search(s, evaluator, expired, {.families = uses, .below = below});
  cut = found.expired;
  if (cut || found.plans.empty()) return std::nullopt;
  return std::move(found.plans.front());
}

}  // namespace

void add_unasked(Strategies& all, const Scenario& s, int threads,
                 const std::function<bool()>& stopped) {
  if (all.found.plans.empty() || all.found.expired) return;
  const Seconds below = all.found.plans.front().iteration / worth_a_key;
  const std::vector<std::string_view> keys = unasked_keys(s);
  std::vector<std::optional<UnaskedKey>> found(keys.size());
  share_out(keys.size(), threads, [&](std::size_t i) {
    bool cut = false;
    UnaskedKey one{std::string(keys[i]), fastest_with(s, keys[i], below, stopped, cut)};
    if (!cut) found[i] = std::move(one);
  });
  for (std::optional<UnaskedKey>& one : found)
    if (one) all.unasked.push_back(std::move(*one));
}

}  // namespace planner
