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

// Pairs that are worth a simulation.
constexpr std::size_t most_ranked = 8;

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
    const double output = r.rate * s_.serving.output.mean;
    if (r.saturated || !keeps(asked) || !reaches(output, devices)) return;
    ++found_.keep;
    const ServingMerit merit = merit_of(s_.serving.goal, output, devices, r.tpot.value);
    if (ranked_.size() < most_ranked || merit > ranked_.back().first) rank(merit, choice());
  }

  void finish() {
    for (const auto& [merit, choice] : ranked_) found_.best.push_back(choice);
    for (const auto& choice : extreme_) {
      if (choice) found_.extremes.push_back(*choice);
    }
  }

 private:
  void rank(const ServingMerit& merit, const ServingChoice& choice) {
    const auto same = std::ranges::find_if(ranked_, [&](const auto& other) {
      return other.second.apart == choice.apart && other.second.weights == choice.weights;
    });
    if (same != ranked_.end()) {
      if (merit <= same->first) return;
      ranked_.erase(same);
    }
    const auto at = std::ranges::find_if(ranked_, [&](const auto& o) { return merit > o.first; });
    ranked_.insert(at, {merit, choice});
    if (ranked_.size() > most_ranked) ranked_.pop_back();
  }

  bool keeps(const std::array<double, 4>& asked) const {
    const LatencyBound& b = s_.serving.bound;
    const auto within = [](double mean, Seconds most) {
      return most.value <= 0 || mean <= most.value;
    };
    return within(asked[0], b.ttft) && within(asked[1], b.tpot) && within(asked[2], b.e2e);
  }

  bool reaches(double output, std::int64_t devices) const {
    const ServingGoal& goal = s_.serving.goal;
    if (output < goal.output_per_s) return false;
    if (goal.usd_per_million <= 0) return true;
    const double usd = s_.cluster.operation.usd_per_device_hour * static_cast<double>(devices);
    return usd / (output * 3600) * 1e6 <= goal.usd_per_million;
  }

  const ServingScenario& s_;
  PoolSearch& found_;
  std::vector<std::pair<ServingMerit, ServingChoice>> ranked_;  // the best first
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
