#include "planner/diagnosis/serving_remedies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "costmodel/base/unit_text.hpp"

namespace planner {

using namespace costmodel;

namespace {

// So that what is printed in three digits is not below what it allows.
constexpr double rounding_up = 1.006;
constexpr std::size_t most_simulated = 32;

std::string sizes_text(const ServingChoice& c) {
  const auto text = [](const ServingSizes& z) {
    return fmt::format("tp {} · pp {} · ep {} · dp {}", z.tp, z.pp, z.ep, z.dp);
  };
  if (c.apart) {
    return fmt::format("prompts on {}, decoding on {}, {}", text(c.apart->prefill),
                       text(c.apart->decode), to_string(c.weights));
  }
  return fmt::format("{}, {}", text(c.sizes), to_string(c.weights));
}

std::string per_second(double requests) {
  return requests < 100 ? fmt::format("{:.3g}", requests) : format_integer(std::llround(requests));
}

// As evaluate reports it.
ServingEstimate reported(const ServingScenario& s, const ServingCandidate& c) {
  return planned_estimate(with_choice(s, c.choice));
}

void add_budget(const ServingScenario& s, std::vector<std::string>& all) {
  const std::int64_t devices = affordable_devices(s);
  if (devices >= s.cluster.devices) return;
  const double whole =
      s.cluster.operation.usd_per_device_hour * static_cast<double>(s.cluster.devices);
  all.push_back(fmt::format(
      "The budget pays for {} of {} devices: --set serving.budget.usd_per_hour={:.4g} pays for "
      "all.",
      devices, s.cluster.devices, whole));
}

// Devices of the smallest replica that holds a request; 0: none of the cluster does.
std::int64_t least_replica(const ServingScenario& written) {
  ServingScenario s = written;
  std::int64_t least = 0;
  for (ServingSizes candidate : instance_sizes(s, s.cluster.devices, s.model.experts > 0)) {
    const std::int64_t devices =
        candidate.spreads_experts() ? candidate.devices() : candidate.replica();
    if (least > 0 && devices >= least) continue;
    for (const WeightFormat format : formats_of(written)) {
      s.serving.weights = format;
      const auto memory = serving_memory(s, candidate);
      const bool fits =
          memory.fits() && memory.tokens >= s.serving.input.mean + s.serving.output.mean;
      if (fits) least = devices;
    }
  }
  return least;
}

std::vector<std::string> larger_budget(const ServingScenario& s, std::int64_t least) {
  return {fmt::format("The budget pays for {} of {} devices, and the smallest replica takes {}: "
                      "--set serving.budget.usd_per_hour={:.4g} pays for it.",
                      affordable_devices(s), s.cluster.devices, least,
                      s.cluster.operation.usd_per_device_hour * static_cast<double>(least)),
          "Or weights of fewer bits (--set serving.weights=auto)."};
}

std::vector<std::string> larger_devices(const ServingScenario& s) {
  const std::int64_t devices = affordable_devices(s);
  if (const std::int64_t least = least_replica(s); least > devices) return larger_budget(s, least);
  ServingSizes widest;
  for (int tp = 1; tp <= std::min<std::int64_t>(devices, 64); tp *= 2)
    if (s.model.common_heads() % tp == 0) widest.tp = tp;
  const auto held = weights_held(s.model, s.serving.weights, widest);
  const auto length = length_remedy(serving_memory(s, widest, held));
  const std::string none = fmt::format(
      "No plan leaves room for one request: on tp {} the {} weights take {} of a device's {}.",
      widest.tp, to_string(s.serving.weights), format_bytes(held),
      format_bytes(s.cluster.device.memory));
  std::vector<std::string> all{
      length.empty() ? none : length,
      "More devices (--set cluster.devices=N), weights of fewer bits (--set "
      "serving.weights=auto), or a narrower cache (--set serving.kv_cache=fp8)."};
  add_budget(s, all);
  return all;
}

int bounds_asked(const ServingSpec& serving) {
  const LatencyBound& bound = serving.bound;
  return (bound.tpot.value > 0) + (bound.ttft.value > 0) + (bound.e2e.value > 0);
}

// The bounds of latency, but for that of the key, are kept.
bool keeps_others(const ServingSpec& serving, const ServingEstimate& e, std::string_view key) {
  const auto within = [&](std::string_view name, Seconds bound, double mean) {
    return name == key || bound.value <= 0 || mean <= bound.value;
  };
  return within("tpot_s", serving.bound.tpot, e.tpot.mean) &&
         within("ttft_s", serving.bound.ttft, e.ttft.mean) &&
         within("e2e_s", serving.bound.e2e, e.e2e.mean);
}

// The plan of the least `amount`: of those that have the least in closed form, which the simulation
// may put in another order.
template <class Amount>
ServingCandidate least_of(const ServingScenario& s, std::vector<ServingCandidate> all,
                          Amount amount) {
  std::ranges::stable_sort(all, {}, [&](const auto& c) { return amount(c.estimate); });
  if (all.size() > most_simulated) all.resize(most_simulated);
  return *std::ranges::min_element(all, {}, [&](const auto& c) { return amount(reported(s, c)); });
}

// The shortest `name` of any plan that keeps up, and of those that keep the other bounds where any
// does, if it exceeds the bound.
template <class Latency>
void add_shortest(const ServingScenario& s, const std::vector<ServingCandidate>& fit,
                  const char* name, const char* key, Seconds bound, Latency latency,
                  std::vector<std::string>& all) {
  if (bound.value <= 0) return;
  std::vector<ServingCandidate> keeping;
  std::ranges::copy_if(fit, std::back_inserter(keeping), [&](const ServingCandidate& c) {
    return keeps_others(s.serving, c.estimate, key);
  });
  std::ranges::stable_sort(keeping, {},
                           [&](const ServingCandidate& c) { return latency(c.estimate); });
  if (keeping.size() > most_simulated) keeping.resize(most_simulated);
  // The closed form may keep a bound that the simulation does not.
  auto at = std::ranges::find_if(keeping, [&](const ServingCandidate& c) {
    return keeps_others(s.serving, reported(s, c), key);
  });
  const bool several = bounds_asked(s.serving) > 1, some = at != keeping.end() && several;
  const ServingCandidate best =
      at != keeping.end() ? *at
                          : least_of(s, fit, [&](const ServingEstimate& e) { return latency(e); });
  const Seconds shortest(latency(reported(s, best)));
  if (shortest <= bound || shortest.value == without_end) return;
  const std::string allowed = fmt::format(": allow that (--set serving.latency_bound.{}={:.3g})",
                                          key, shortest.value * rounding_up);
  // Another bound would still be missed: add_together has what is enough.
  all.push_back(fmt::format("The shortest {} of any plan{} is {}, by {} with batches of {}{}.",
                            name, some ? " that keeps the other bounds" : "",
                            format_seconds(shortest), sizes_text(best.choice),
                            best.choice.max_num_seqs, several && !some ? "" : allowed));
}

// Where no plan keeps all bounds of latency but one: the plan that misses them by least, and what
// is then to be allowed of each.
void add_together(const ServingScenario& s, const std::vector<ServingCandidate>& fit,
                  std::vector<std::string>& all) {
  const bool advised = std::ranges::any_of(
      all, [](const std::string& line) { return line.find("--set ") != std::string::npos; });
  if (bounds_asked(s.serving) < 2 || all.empty() || advised) return;
  const ServingCandidate best = least_of(s, fit, [&](const ServingEstimate& e) {
    return e.saturated ? without_end : worst_excess(s, e);
  });
  std::vector<std::string> missed, allowed;
  for (const AskedBound& bound : asked_bounds(s, reported(s, best))) {
    if (bound.kept || !bound.key.starts_with("latency_bound.")) continue;
    if (bound.reported == without_end) return;
    missed.push_back(fmt::format("{} {}", bound.name, format_seconds(Seconds(bound.reported))));
    allowed.push_back(
        fmt::format("--set serving.{}={:.3g}", bound.key, bound.reported * rounding_up));
  }
  all.push_back(fmt::format("Nearest to all of them is {} with batches of {}, {}: allow that ({}).",
                            sizes_text(best.choice), best.choice.max_num_seqs,
                            fmt::join(missed, " and "), fmt::join(allowed, " ")));
}

void add_arrivals(const ServingScenario& s, const std::vector<ServingCandidate>& fit,
                  std::vector<std::string>& all) {
  const auto at = std::ranges::max_element(
      fit, [](const auto& a, const auto& b) { return a.estimate.capacity < b.estimate.capacity; });
  const double most = reported(s, *at).capacity;
  if (s.serving.arrival_rate <= most) return;
  const auto devices = static_cast<long long>(
      std::ceil(static_cast<double>(affordable_devices(s)) * s.serving.arrival_rate / most));
  all.push_back(
      fmt::format("No plan answers {} requests a second: the most is {}. {} devices at least would "
                  "(--set cluster.devices={}, or more).",
                  per_second(s.serving.arrival_rate), per_second(most), devices, devices));
}

// Of those that keep the latency bound, what comes nearest to the target and the price.
void add_goal(const ServingScenario& s, const std::vector<ServingCandidate>& fit,
              std::vector<std::string>& all) {
  const ServingGoal& goal = s.serving.goal;
  std::vector<const ServingCandidate*> keeping;
  for (const ServingCandidate& c : fit) {
    if (keeps(c.estimate, s.serving.bound)) keeping.push_back(&c);
  }
  if (!goal.any() || keeping.empty()) return;
  const auto* fastest = *std::ranges::max_element(keeping, [](const auto* a, const auto* b) {
    return a->estimate.output_per_s < b->estimate.output_per_s;
  });
  const double output = reported(s, *fastest).output_per_s;
  const std::int64_t devices = affordable_devices(s);
  if (output < goal.output_per_s) {
    all.push_back(fmt::format(
        "The most tokens/s{} are {}, by {}, of {} wanted{}.",
        s.serving.bound.any() ? " that keep the latency bound" : "",
        format_integer(std::llround(output)), sizes_text(fastest->choice),
        format_integer(std::llround(goal.output_per_s)),
        devices < s.cluster.devices ? " (on the devices that the budget pays for)" : ""));
    if (s.serving.concurrency > 0) {
      all.push_back(fmt::format("More in flight give more: --set serving.concurrency=N ({} now).",
                                s.serving.concurrency));
    }
    if (devices == s.cluster.devices) {
      all.push_back(
          fmt::format("More devices may: --set cluster.devices=N ({} now).", s.cluster.devices));
    }
  }
  if (goal.usd_per_million <= 0) return;
  const auto* cheapest = *std::ranges::min_element(keeping, [](const auto* a, const auto* b) {
    return a->estimate.usd_per_million_output < b->estimate.usd_per_million_output;
  });
  const double usd = reported(s, *cheapest).usd_per_million_output;
  if (usd <= goal.usd_per_million) return;
  all.push_back(
      fmt::format("The cheapest million tokens cost {:.3g} dollars, by {}: allow that (--set "
                  "serving.budget.usd_per_million_tokens={:.3g}).",
                  usd, sizes_text(cheapest->choice), usd * rounding_up));
}

std::size_t asked_count(const ServingScenario& s) {
  return asked_bounds(s, {}).size() + (s.serving.arrival_rate > 0 ? 1 : 0);
}

std::string nearest_text(const ServingScenario& s, const ServingCandidate& c) {
  std::vector<std::string> missed;
  for (const AskedBound& bound : asked_bounds(s, c.estimate)) missed.push_back(to_string(bound));
  if (c.estimate.saturated) {
    missed.push_back(fmt::format("{} requests a second arrive, {} are answered",
                                 per_second(s.serving.arrival_rate),
                                 per_second(c.estimate.capacity)));
  }
  return fmt::format("Nearest of those simulated, {} with batches of {}: {}.", sizes_text(c.choice),
                     c.choice.max_num_seqs, fmt::join(missed, "; "));
}

}  // namespace

std::string length_remedy(const ServingMemory& memory) {
  if (memory.tokens <= 0 || memory.tokens >= memory.longest) return "";
  return fmt::format(
      "The engine does not start: a request of max_model_len {} needs {} of keys and values, and "
      "{} are left: --set serving.max_model_len={:.0f}, or less.",
      format_integer(std::llround(memory.longest)), format_bytes(memory.token * memory.longest),
      format_bytes(memory.cache), memory.tokens);
}

std::vector<std::string> serving_remedies(const ServingScenario& s, const ServingSearch& found) {
  if (!found.best.empty()) return {};
  const std::vector<ServingCandidate>& fit = found.fitting;
  if (found.choices == 0) {
    return {
        fmt::format("What is written of the plan goes with no sizes on {} devices, for tp x pp x "
                    "dp are more or "
                    "do not divide the model: --set 'plan={{}}' leaves all open.",
                    affordable_devices(s))};
  }
  if (fit.empty()) return larger_devices(s);
  std::vector<std::string> all;
  const auto& bound = s.serving.bound;
  add_shortest(
      s, fit, "time a token", "tpot_s", bound.tpot,
      [](const ServingEstimate& e) { return e.tpot.mean; }, all);
  add_shortest(
      s, fit, "first token", "ttft_s", bound.ttft,
      [](const ServingEstimate& e) { return e.ttft.mean; }, all);
  add_shortest(
      s, fit, "answer", "e2e_s", bound.e2e, [](const ServingEstimate& e) { return e.e2e.mean; },
      all);
  add_together(s, fit, all);
  add_arrivals(s, fit, all);
  add_goal(s, fit, all);
  if (all.empty() && asked_count(s) > 1) {
    const bool one_bound = s.serving.arrival_rate > 0 && asked_count(s) == 2;
    all.push_back(
        one_bound ? fmt::format("It can be kept, but by no plan at {} requests a second: "
                                "loosen it, or send fewer (serving.arrival_rate).",
                                per_second(s.serving.arrival_rate))
                  : "Each bound alone can be kept, all together by no plan: loosen one of them.");
  }
  if (!found.nearest.empty()) all.push_back(nearest_text(s, found.nearest.front()));
  add_budget(s, all);
  if (!s.serving.weights_open) {
    all.emplace_back("Weights of fewer bits are read faster: --set serving.weights=auto.");
  }
  return all;
}

}  // namespace planner
