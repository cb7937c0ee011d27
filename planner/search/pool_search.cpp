#include "planner/search/pool_search.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "costmodel/serving/disaggregation.hpp"

namespace planner {

using namespace costmodel;

namespace {

struct Batch {
  TokenPool pool;
  std::int64_t max_num_seqs = 0;
};

bool searched(const ServingScenario& s) {
  if (s.plan.disaggregation) return true;
  const bool sized = s.plan.tp || s.plan.pp || s.plan.ep || s.plan.dp;
  return !sized && !s.plan.together && !s.serving.decode_only;
}

// Those that fit, by their devices.
std::vector<PromptPool> prompt_pools(const ServingScenario& s,
                                     const std::vector<ServingSizes>& sizes, WeightFormat format,
                                     PricedSteps& steps) {
  std::vector<PromptPool> pools;
  for (const ServingSizes& size : sizes) {
    const PromptPool pool = prompt_pool(s, size, steps.of(size, format));
    if (pool.fits) pools.push_back(pool);
  }
  std::ranges::stable_sort(pools, [](const PromptPool& a, const PromptPool& b) {
    return a.sizes.devices() < b.sizes.devices();
  });
  return pools;
}

// A larger batch than runs at the same time is the same plan.
std::vector<Batch> token_pools(const ServingScenario& written,
                               const std::vector<ServingSizes>& sizes, WeightFormat format,
                               PricedSteps& steps) {
  ServingScenario s = written;
  std::vector<Batch> pools;
  for (const ServingSizes& size : sizes) {
    double running = 0;
    for (const std::int64_t seqs : batches_of(written)) {
      s.serving.limits.max_num_seqs = seqs;
      const TokenPool pool = token_pool(s, size, steps.of(size, format));
      if (!pool.fits || pool.state.running == running) continue;
      running = pool.state.running;
      pools.push_back({pool, seqs});
    }
  }
  return pools;
}

// What is kept of the pairs seen.
class Kept {
 public:
  Kept(const ServingScenario& s, PoolSearch& found) : s_(s), found_(found) {
    least_.fill(std::numeric_limits<double>::infinity());
  }

  void take(const PromptPool& prompts, const Batch& batch, WeightFormat format) {
    ++found_.fit;
    const PooledRates r = pooled_rates(s_.serving, prompts, batch.pool);
    const std::array<double, 4> asked{r.ttft.value, r.tpot.value, r.e2e.value, -r.capacity};
    const auto choice = [&] {
      return ServingChoice{batch.pool.sizes, format, batch.max_num_seqs,
                           s_.serving.limits.max_num_batched_tokens,
                           Disaggregation{prompts.sizes, batch.pool.sizes}};
    };
    for (std::size_t i = 0; i < asked.size(); ++i) {
      if (asked[i] >= least_[i]) continue;
      least_[i] = asked[i];
      extreme_[i] = choice();
    }
    const std::int64_t devices = prompts.sizes.devices() + batch.pool.sizes.devices();
    const double excess = excess_of(r, devices);
    found_.keep += excess <= 1 ? 1 : 0;
    if (excess > worst_simulated(s_.serving)) return;
    const double rate = s_.serving.arrival_rate > 0 ? s_.serving.arrival_rate : r.rate;
    const ServingMerit merit =
        merit_of(s_.serving.goal, rate * s_.serving.output.mean, devices, r.e2e.value);
    if (near_.takes(merit, excess, devices)) near_.take({merit, excess, choice()}, devices);
  }

  void finish() {
    found_.near = near_.sorted();
    for (const auto& choice : extreme_) {
      if (choice) found_.extremes.push_back(*choice);
    }
  }

 private:
  // The most that a bound, the target, the price or the capacity is missed by.
  double excess_of(const PooledRates& r, std::int64_t devices) const {
    const LatencyBound& b = s_.serving.bound;
    const ServingGoal& goal = s_.serving.goal;
    const double output = std::max(1e-12, r.rate * s_.serving.output.mean);
    double worst = r.saturated ? s_.serving.arrival_rate / r.capacity : goal.output_per_s / output;
    for (const auto& [time, most] : {std::pair{r.ttft, b.ttft}, {r.tpot, b.tpot}, {r.e2e, b.e2e}})
      if (most.value > 0) worst = std::max(worst, time / most);
    if (goal.usd_per_million <= 0) return worst;
    const double usd = s_.cluster.operation.usd_per_device_hour * static_cast<double>(devices);
    return std::max(worst, usd / (output * 3600) * 1e6 / goal.usd_per_million);
  }

  const ServingScenario& s_;
  PoolSearch& found_;
  Shortlist near_;
  std::array<double, 4> least_{};
  std::array<std::optional<ServingChoice>, 4> extreme_;
};

}  // namespace

PoolSearch search_pools(const ServingScenario& scenario, PricedSteps& steps) {
  PoolSearch found;
  const std::int64_t devices = affordable_devices(scenario);
  if (devices < 2 || !searched(scenario)) return found;
  const bool fewer = may_take_fewer(scenario) || scenario.plan.disaggregation;
  const auto& written = scenario.plan.disaggregation;
  const std::vector<ServingSizes> sizes =
      written ? std::vector<ServingSizes>{} : instance_sizes(scenario, devices - 1, true);
  ServingScenario s = scenario;
  Kept kept(s, found);
  for (const WeightFormat format : formats_of(scenario)) {
    s.serving.weights = format;
    const std::vector<PromptPool> prompts =
        prompt_pools(s, written ? std::vector{written->prefill} : sizes, format, steps);
    const std::vector<Batch> tokens =
        token_pools(s, written ? std::vector{written->decode} : sizes, format, steps);
    for (const Batch& batch : tokens) {
      const std::int64_t left = devices - batch.pool.sizes.devices();
      for (const PromptPool& pool : prompts) {
        const std::int64_t idle = left - pool.sizes.devices();
        if (idle < 0) break;
        // Where fewer devices are no gain, as many instances as there is room for.
        if (!fewer && idle >= std::min(pool.sizes.replica(), batch.pool.sizes.replica())) continue;
        ++found.choices;
        kept.take(pool, batch, format);
      }
    }
  }
  kept.finish();
  return found;
}

}  // namespace planner
