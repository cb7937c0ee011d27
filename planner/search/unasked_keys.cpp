#include "planner/search/unasked_keys.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "costmodel/base/parallel_for.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "planner/search/grid_search.hpp"

namespace planner {

using namespace costmodel;

namespace {

constexpr UnaskedRow rows[]{
    {"offload", "states or activations in host memory",
     [](const Scenario& s) {
       const StackOffers& offers = s.training.stack.offers;
       const bool offered = offers.optimizer_offload || offers.parameter_offload ||
                            offers.layer_offload || offers.module_offload;
       return offered && !s.plan.offload.any() && !s.plan.is_written("offload");
     },
     [](const ParallelPlan& plan) { return plan.offload.any(); }},
    {"dp_replicate", "shards in groups of ranks",
     [](const Scenario& s) {
       return s.training.stack.offers.hybrid_sharding && s.cluster.devices > 2 &&
              !s.plan.is_written("dp_replicate");
     },
     [](const ParallelPlan& plan) { return plan.dp_replicate > 1; }},
    {"dispatcher", "DeepEP in place of HybridEP",
     [](const Scenario& s) {
       return s.model.experts > 0 && !s.plan.is_written("dispatcher") &&
              s.training.stack.offers.flex_dispatcher == FlexDispatcher::both &&
              runs_flex_dispatcher(s.cluster);
     },
     [](const ParallelPlan& plan) {
       return plan.ep > 1 && plan.experts.dispatcher == Dispatcher::deepep;
     }}};

}  // namespace

std::vector<UnaskedRow> unasked_keys(const Scenario& s) {
  std::vector<UnaskedRow> open;
  std::ranges::copy_if(rows, std::back_inserter(open),
                       [&](const UnaskedRow& row) { return row.open(s); });
  return open;
}

namespace {

// Families of plans that are looked at for one key, some 15 us each (0.99 s more of the processor
// for 67,000 of Qwen3 30B on 64 devices); DeepSeek-V3 on 256 has 53,000 that offload.
constexpr int most_families = 100'000;

// The fastest even plan that uses the key and takes less than `below`; `cut` where that was not
// found out.
std::optional<Estimate> fastest_with(Scenario s, const UnaskedRow& row, Seconds below,
                                     const std::function<bool()>& stopped, bool& cut) {
  s.plan.automatic.emplace_back(row.key);
  s.search.top = 1;
  Evaluator evaluator(s.model, s.cluster, s.training);
  int asked = 0;
  const auto expired = [&] { return ++asked > most_families || (stopped && stopped()); };
  SearchResult found = search(s, evaluator, expired, {.families = row.used, .below = below});
  cut = found.expired;
  if (cut || found.plans.empty()) return std::nullopt;
  return std::move(found.plans.front());
}

}  // namespace

void add_unasked(Strategies& all, const Scenario& s, int threads,
                 const std::function<bool()>& stopped) {
  if (all.found.plans.empty() || all.found.expired) return;
  const Seconds below = all.found.plans.front().iteration / worth_a_key;
  const std::vector<UnaskedRow> keys = unasked_keys(s);
  std::vector<std::optional<UnaskedKey>> found(keys.size());
  share_out(keys.size(), threads, [&](std::size_t i) {
    bool cut = false;
    UnaskedKey one{std::string(keys[i].key), std::string(keys[i].what),
                   fastest_with(s, keys[i], below, stopped, cut)};
    if (!cut) found[i] = std::move(one);
  });
  for (std::optional<UnaskedKey>& one : found)
    if (one) all.unasked.push_back(std::move(*one));
}

}  // namespace planner
