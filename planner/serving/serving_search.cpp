#include "planner/serving/serving_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/serving/serving_reader.hpp"

namespace planner {

using costmodel::ServingEstimate;
using costmodel::ServingScenario;
using costmodel::ServingSizes;
using costmodel::WeightFormat;

namespace {

constexpr int widest_tensor = 64;  // beyond a node tensor parallelism is slower yet; for cut-offs

std::vector<int> powers(std::int64_t most) {
  std::vector<int> all;
  for (std::int64_t n = 1; n <= most; n *= 2) all.push_back(static_cast<int>(n));
  return all;
}

std::vector<int> choices_of(const std::optional<int>& written, std::int64_t most) {
  return written ? std::vector{*written} : powers(most);
}

std::vector<WeightFormat> formats_of(const ServingScenario& s) {
  if (!s.serving.weights_open) return {s.serving.weights};
  std::vector<WeightFormat> all{WeightFormat::bf16, WeightFormat::int8, WeightFormat::int4};
  const auto& device = s.cluster.device;
  if (device.peak_of(costmodel::Precision::fp8).value > 0) all.push_back(WeightFormat::fp8);
  if (device.peak_of(costmodel::Precision::nvfp4).value > 0) all.push_back(WeightFormat::nvfp4);
  return all;
}

std::vector<std::int64_t> batches_of(const ServingScenario& s) {
  if (!s.serving.seqs_open) return {s.serving.limits.max_num_seqs};
  return {8, 16, 32, 64, 128, 256, 512, 1024};
}

std::vector<std::int64_t> steps_of(const ServingScenario& s) {
  if (!s.serving.tokens_open) return {s.serving.limits.max_num_batched_tokens};
  return {512, 2048, 8192};
}

// Replicas tried: all that the devices have room for, and for a load that fewer might carry, powers
// of two below.
std::vector<int> replicas_of(const ServingScenario& s, int replica) {
  if (s.plan.dp) return {*s.plan.dp};
  const auto most = static_cast<int>(s.cluster.devices / replica);
  std::vector<int> all;
  if (s.serving.arrival_rate > 0) all = powers(most - 1);
  if (most > 0) all.push_back(most);
  return all;
}

void add_sizes(const ServingScenario& s, ServingSizes sizes, std::vector<ServingSizes>& all) {
  std::set<int> eps{1};
  if (s.plan.ep) {
    eps = {*s.plan.ep};
  } else if (s.model.experts > 0) {
    eps.insert({sizes.tp, sizes.tp * sizes.dp});
  }
  for (const int ep : eps) {
    sizes.ep = ep;
    if (sizes_fault(sizes, s.model, s.cluster).empty()) all.push_back(sizes);
  }
}

// What a better plan has more of: tokens a second and device. Of an open load, which all that keep
// up serve at its rate, that is fewer devices.
double value_of(const ServingCandidate& c) { return c.estimate.per_device(); }

bool ranks_before(const ServingCandidate& a, const ServingCandidate& b) {
  if (value_of(a) != value_of(b)) return value_of(a) > value_of(b);
  return a.estimate.tpot.mean < b.estimate.tpot.mean;
}

std::vector<ServingCandidate> front_of(std::vector<ServingCandidate> all) {
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    if (a.estimate.tpot.mean != b.estimate.tpot.mean)
      return a.estimate.tpot.mean < b.estimate.tpot.mean;
    return value_of(a) > value_of(b);
  });
  std::vector<ServingCandidate> front;
  for (const ServingCandidate& c : all) {
    if (front.empty() || value_of(c) > value_of(front.back()) * 1.001) front.push_back(c);
  }
  return front;
}

// One candidate for each sizes and format: rows of a ranking that differ in a limit alone say
// little.
std::vector<ServingCandidate> distinct(const std::vector<ServingCandidate>& sorted,
                                       std::size_t most) {
  std::vector<ServingCandidate> kept;
  for (const ServingCandidate& c : sorted) {
    const bool seen = std::any_of(kept.begin(), kept.end(), [&](const ServingCandidate& k) {
      return k.choice.sizes == c.choice.sizes && k.choice.weights == c.choice.weights;
    });
    if (!seen) kept.push_back(c);
    if (kept.size() == most) break;
  }
  return kept;
}

std::string sizes_text(const ServingChoice& c) {
  return fmt::format("tp {} · pp {} · ep {} · dp {}, {}", c.sizes.tp, c.sizes.pp, c.sizes.ep,
                     c.sizes.dp, to_string(c.weights));
}

// The split of the best plan's replicas with the most tokens a device.
void find_split(const ServingScenario& s, ServingSearch& found) {
  const ServingChoice& choice = found.best.front().choice;
  if (choice.sizes.dp < 2 || choice.sizes.spreads_experts() || s.serving.decode_only) return;
  ServingScenario split = with_choice(s, choice);
  for (int prompts = 1; prompts < choice.sizes.dp; ++prompts) {
    costmodel::Disaggregation pools{choice.sizes, choice.sizes};
    pools.prefill.dp = prompts;
    pools.decode.dp = choice.sizes.dp - prompts;
    split.plan.disaggregation = pools;
    const ServingEstimate e = disaggregated_estimate(split);
    if (!keeps(e, s.serving.bound)) continue;
    if (found.split && e.per_device() <= found.split_estimate.per_device()) continue;
    found.split = pools;
    found.split_estimate = e;
  }
}

// What no plan of the space keeps, and what would.
std::vector<std::string> remedies_of(const ServingScenario& s,
                                     const std::vector<ServingCandidate>& fit) {
  std::vector<std::string> all;
  if (fit.empty()) {
    ServingSizes widest;
    for (const int tp : powers(std::min<std::int64_t>(s.cluster.devices, widest_tensor)))
      if (s.model.heads % tp == 0) widest.tp = tp;
    const auto held = weights_held(s.model, s.serving.weights, widest);
    all.push_back(
        fmt::format("No plan leaves room for one request: on tp {} the {} weights take {} "
                    "of a device's {}.",
                    widest.tp, to_string(s.serving.weights), format_bytes(held),
                    format_bytes(s.cluster.device.memory)));
    all.push_back(
        "More devices (--set cluster.devices=N), weights of fewer bits (--set "
        "serving.weights=auto), or a narrower cache (--set serving.kv_cache=fp8).");
    return all;
  }
  const auto least = [&](const char* name, const char* key, costmodel::Seconds bound,
                         auto latency) {
    if (bound.value <= 0) return;
    const auto at = std::min_element(fit.begin(), fit.end(), [&](const auto& a, const auto& b) {
      return latency(a.estimate) < latency(b.estimate);
    });
    const costmodel::Seconds shortest(latency(at->estimate));
    if (shortest <= bound) return;
    all.push_back(fmt::format(
        "The shortest {} of any plan is {}, by {}: allow that (--set "
        "serving.latency_bound.{}={:.3g}).",
        name, format_seconds(shortest), sizes_text(at->choice), key, shortest.value * 1.001));
  };
  const auto& bound = s.serving.bound;
  least("time a token", "tpot_s", bound.tpot, [](const ServingEstimate& e) { return e.tpot.mean; });
  least("first token", "ttft_s", bound.ttft, [](const ServingEstimate& e) { return e.ttft.mean; });
  least("answer", "e2e_s", bound.e2e, [](const ServingEstimate& e) { return e.e2e.mean; });
  const double most = std::max_element(fit.begin(), fit.end(), [](const auto& a, const auto& b) {
                        return a.estimate.capacity < b.estimate.capacity;
                      })->estimate.capacity;
  if (s.serving.arrival_rate > most) {
    const auto devices = static_cast<long long>(
        std::ceil(static_cast<double>(s.cluster.devices) * s.serving.arrival_rate / most));
    all.push_back(
        fmt::format("No plan answers {:.3g} requests a second: the most is {:.3g}. About "
                    "{} devices would (--set cluster.devices={}).",
                    s.serving.arrival_rate, most, devices, devices));
  }
  if (all.empty())
    all.push_back("Each bound alone can be kept, all together by no plan: loosen one of them.");
  if (!s.serving.weights_open)
    all.push_back("Weights of fewer bits are read faster: --set serving.weights=auto.");
  return all;
}

}  // namespace

std::vector<ServingChoice> serving_space(const ServingScenario& s) {
  std::vector<ServingSizes> sizes;
  const std::int64_t devices = s.cluster.devices;
  for (const int tp : choices_of(s.plan.tp, std::min<std::int64_t>(devices, widest_tensor))) {
    for (const int pp : choices_of(s.plan.pp, std::min<std::int64_t>(devices / tp, 16))) {
      for (const int dp : replicas_of(s, tp * pp)) add_sizes(s, {tp, pp, 1, dp}, sizes);
    }
  }
  std::vector<ServingChoice> all;
  for (const ServingSizes& size : sizes) {
    for (const WeightFormat format : formats_of(s)) {
      for (const std::int64_t seqs : batches_of(s)) {
        for (const std::int64_t tokens : steps_of(s)) {
          if (tokens >= seqs) all.push_back({size, format, seqs, tokens});
        }
      }
    }
  }
  return all;
}

ServingScenario with_choice(ServingScenario s, const ServingChoice& choice) {
  s.serving.weights = choice.weights;
  s.serving.weights_open = false;
  s.serving.limits.max_num_seqs = choice.max_num_seqs;
  s.serving.limits.max_num_batched_tokens = choice.max_num_batched_tokens;
  s.plan.tp = choice.sizes.tp;
  s.plan.pp = choice.sizes.pp;
  s.plan.ep = choice.sizes.ep;
  s.plan.dp = choice.sizes.dp;
  return s;
}

ServingSearch search_serving(const ServingScenario& scenario, int top) {
  require_possible(scenario);
  ServingSearch found;
  std::vector<ServingCandidate> fit, kept;
  for (const ServingChoice& choice : serving_space(scenario)) {
    ++found.choices;
    ServingCandidate c{choice, quick_estimate(with_choice(scenario, choice), choice.sizes), false};
    if (!c.estimate.fits) continue;
    c.keeps = keeps(c.estimate, scenario.serving.bound);
    if (c.keeps) kept.push_back(c);
    fit.push_back(std::move(c));
  }
  found.fit = fit.size();
  found.keep = kept.size();
  std::stable_sort(kept.begin(), kept.end(), ranks_before);
  found.best = distinct(kept, static_cast<std::size_t>(std::max(1, top)));
  for (ServingCandidate& c : found.best)
    c.estimate = serving_estimate(with_choice(scenario, c.choice), c.choice.sizes);
  std::vector<ServingCandidate> steady;
  for (const ServingCandidate& c : fit) {
    if (!c.estimate.saturated) steady.push_back(c);
  }
  found.front = front_of(steady);
  if (found.best.empty()) {
    found.remedies = remedies_of(scenario, fit);
  } else {
    find_split(scenario, found);
  }
  return found;
}

}  // namespace planner
