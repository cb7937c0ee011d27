// Scenarios of serving drawn at random, and the laws that every answer obeys whatever the constants
// of engines and devices are.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/base/error.hpp"
#include "costmodel/config/yaml.hpp"
#include "costmodel/serving/engine.hpp"
#include "costmodel/serving/serving_estimate.hpp"
#include "costmodel/serving/serving_reader.hpp"
#include "planner/report/json_serving.hpp"
#include "planner/report/serving_comparison.hpp"
#include "planner/search/serving_search.hpp"

namespace laws {

// SplitMix64 (Steele et al. 2014): the same on every machine.
class ServingDice {
 public:
  explicit ServingDice(std::uint64_t seed) : state_(seed) {}
  std::uint64_t below(std::uint64_t n) {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return (z ^ (z >> 31)) % n;
  }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  template <class T, std::size_t n>
  T of(const std::array<T, n>& all) {
    return all[below(n)];
  }

 private:
  std::uint64_t state_;
};

inline std::string drawn_length(ServingDice& dice, const std::array<int, 6>& means) {
  const int mean = dice.of(means);
  if (dice.one_in(6)) return fmt::format("{{mean: {}, p95: {}}}", mean, 3 * mean);
  if (dice.one_in(6)) return fmt::format("{{min: {}, max: {}}}", (mean + 1) / 2, 3 * mean / 2);
  return fmt::format("{}", mean);
}

inline std::string drawn_load(ServingDice& dice) {
  constexpr std::array counts{1, 2, 7, 16, 33, 100, 256};
  constexpr std::array rates{0.1, 0.5, 2.0, 5.0, 20.0, 100.0};
  const int count = dice.of(counts);
  switch (dice.below(5)) {
    case 0: return fmt::format("  arrival_rate: {}\n", dice.of(rates));
    case 1: return fmt::format("  arrival_rate: {}\n  requests: {}\n", dice.of(rates), count);
    case 2: return fmt::format("  concurrency: {}\n  requests: {}\n", count, 3 * count);
    case 3: return fmt::format("  requests: {}\n", count);
    default: return fmt::format("  concurrency: {}\n", count);
  }
}

inline std::string drawn_sizes(ServingDice& dice) {
  constexpr std::array powers{1, 1, 2, 4};
  return fmt::format("tp: {}, pp: {}, dp: {}", dice.of(powers), dice.of(powers), dice.of(powers));
}

// A key a line, so that a shrinker can leave some out.
inline std::string serving_scenario(std::uint64_t seed) {
  ServingDice dice(seed);
  constexpr std::array models{"llama-3-8b",   "llama-2-7b",       "mistral-7b", "qwen2-1.5b",
                              "mixtral-8x7b", "deepseek-v2-lite", "gpt2-xl",    "llama-2-70b"};
  constexpr std::array clusters{"dgx-h100", "dgx-a100", "dgx-h200", "pcie-8x-l40s", "dgx-b200"};
  constexpr std::array engines{"vllm-0.5",          "vllm-0.6",     "vllm-0.9",
                               "vllm-0.11",         "sglang-0.4",   "sglang-0.5",
                               "tensorrt-llm-0.17", "mindie-2.0",   "tensorrt-llm-0.11",
                               "tensorrt-llm-1.0",  "deepseek-2025"};
  constexpr std::array devices{1, 2, 4, 8, 16};
  std::string text = fmt::format("workload: inference\nmodel: {}\ncluster:\n  base: {}\n",
                                 dice.of(models), dice.of(clusters));
  text += fmt::format("  devices: {}\nserving:\n  stack: {}\n", dice.of(devices), dice.of(engines));
  text += "  input_tokens: " + drawn_length(dice, {1, 17, 128, 500, 1024, 3000}) + "\n";
  text += "  output_tokens: " + drawn_length(dice, {1, 2, 9, 64, 128, 256}) + "\n";
  text += drawn_load(dice);
  const auto maybe = [&](const char* line) {
    if (dice.one_in(5)) text += line;
  };
  maybe("  weights: fp8\n");
  maybe("  kv_cache: fp8\n");
  maybe("  max_num_seqs: 16\n");
  maybe("  max_num_batched_tokens: 1024\n");
  maybe("  prefix_hit_share: 0.5\n");
  maybe("  gpu_memory_utilization: 0.3\n");
  maybe("  block_size: 64\n");
  if (dice.one_in(50)) return text + "plan: auto\n";
  if (dice.one_in(4))
    return text + fmt::format("plan:\n  disaggregation: {{prefill: {{{}}}, decode: {{{}}}}}\n",
                              drawn_sizes(dice), drawn_sizes(dice));
  return text + fmt::format("plan: {{{}}}\n", drawn_sizes(dice));
}

using Law = std::optional<std::string>;  // what is broken

inline bool near(double a, double b, double part) {
  return std::abs(a - b) <= part * std::max(std::abs(a), std::abs(b));
}

// What the load keeps in flight at most, of each of which no more time is reported than it has.
inline Law broken_little(const costmodel::ServingSpec& s, const costmodel::ServingEstimate& e,
                         const char* of) {
  if (e.saturated) return {};
  const double in_flight = e.requests_per_s * e.e2e.mean;
  const auto wrong = [&](double n) {
    return fmt::format("Little's law ({}): {} in flight of {}", of, in_flight, n);
  };
  const auto all = static_cast<double>(s.requests), clients = static_cast<double>(s.concurrency);
  if (clients > 0 && all == 0 && !near(in_flight, clients, 1e-6)) return wrong(clients);
  if (clients > 0 && in_flight > clients * (1 + 1e-9)) return wrong(clients);
  if (all > 0 && in_flight > all * (1 + 1e-9)) return wrong(all);
  if (clients > 0 && e.busy > 0 && e.running * e.busy > clients * (1 + 1e-9))
    return fmt::format("{} run in each of {} replicas, and {} are in flight", e.running, e.busy,
                       clients);
  return {};
}

inline Law broken_parts(const costmodel::ServingEstimate& e) {
  const double parts = (e.token.total() + e.stalled).value;
  if (e.tpot.mean > 0 && !near(parts, e.tpot.mean, 1e-9))
    return fmt::format("a token's parts: {} of {}", parts, e.tpot.mean);
  for (const double time : {e.tpot.mean, e.requests_per_s, e.token.total().value}) {
    if (!std::isfinite(time) || time < 0) return fmt::format("a figure is {}", time);
  }
  return {};
}

inline Law broken_latencies(const costmodel::ServingScenario& s,
                            const costmodel::ServingEstimate& e) {
  const costmodel::ServingSpec& load = s.serving;
  if (e.saturated != (load.arrival_rate > e.capacity)) return "saturated, and not above capacity";
  if (e.saturated) {
    if (!near(e.requests_per_s, e.capacity, 1e-9)) return "overloaded, and not at the capacity";
    if (std::isfinite(e.ttft.mean) || std::isfinite(e.e2e.mean)) return "overloaded, and it ends";
    return {};
  }
  if (load.arrival_rate > 0 && e.requests_per_s > load.arrival_rate * (1 + 1e-9))
    return fmt::format("{} answers of {} requests a second", e.requests_per_s, load.arrival_rate);
  if (e.ttft.mean > e.e2e.mean * (1 + 1e-9) || e.ttft.mean <= 0) return "the first token is last";
  const bool drawn = load.output.p95 > 0 || load.output.most > 0;
  const double by_tokens = e.ttft.mean + e.tpot.mean * (load.output.mean - 1);
  if (!drawn && !near(by_tokens, e.e2e.mean, 1e-6))
    return fmt::format("an answer of {} is {} by its tokens", e.e2e.mean, by_tokens);
  if (load.requests > 0 && load.arrival_rate <= 0 && load.concurrency == 0 &&
      static_cast<double>(load.requests) / e.requests_per_s < e.e2e.p95 * (1 - 1e-9))
    return "the run ends before its answers";
  return {};
}

inline Law broken_formats(const costmodel::ServingScenario& s,
                          const costmodel::ServingEstimate& e) {
  const auto json = nlohmann::json::parse(planner::serving_json(s, e, {}));
  if (json.at("memory").at("cache_bytes").get<double>() < 0) return "negative bytes of cache";
  if (!e.fits) return {};
  const auto titles = planner::served_titles(), cells = planner::served_cells(e);
  const auto cell = [&](const std::string& title) {
    const auto at = std::find(titles.begin(), titles.end(), title);
    return cells.at(static_cast<std::size_t>(at - titles.begin()));
  };
  for (const auto& [title, value] : {std::pair<std::string, nlohmann::json>{
                                         "output_tokens_per_s", json.at("output_tokens_per_s")},
                                     {"first_token_s", json.at("first_token").at("mean_s")},
                                     {"answer_s", json.at("answer").at("mean_s")}}) {
    if (value.is_null() != cell(title).empty()) return title + " is known in one format alone";
    if (value.is_null()) continue;
    if (!near(std::stod(cell(title)), value.get<double>(), 1e-5))
      return fmt::format("{}: {} and {}", title, cell(title), value.get<double>());
  }
  const auto& pools = s.plan.disaggregation;
  if (json.at("plan").at("devices") != (pools ? pools->devices() : e.sizes.devices()))
    return "devices of one pool alone";
  return {};
}

// A change that does a plan good lowers no rate and delays no answer, but for what the order of
// prompts in steps brings with it.
constexpr double order_of_prompts = 0.05;

inline Law broken_order(const char* change, const costmodel::ServingEstimate& worse,
                        const costmodel::ServingEstimate& better, bool apiece) {
  if (!worse.fits || !better.fits) return {};
  const auto above = [&](double a, double b) { return a > b * (1 + order_of_prompts); };
  if (worse.capacity > better.capacity * (1 + 3 * order_of_prompts))
    return fmt::format("{}: capacity {} to {}", change, worse.capacity, better.capacity);
  if (worse.saturated) return {};
  if (above(worse.requests_per_s, better.requests_per_s))
    return fmt::format("{}: {} requests/s to {}", change, worse.requests_per_s,
                       better.requests_per_s);
  const bool nearly_full = worse.requests_per_s > 0.7 * worse.capacity;
  if (above(better.e2e.mean, worse.e2e.mean) && !nearly_full && !apiece)
    return fmt::format("{}: answer {} to {}", change, worse.e2e.mean, better.e2e.mean);
  return {};
}

inline Law broken_growth(const costmodel::ServingScenario& s,
                         const costmodel::ServingEstimate& now) {
  const auto drawn = [](const costmodel::LengthSpec& l) { return l.p95 > 0 || l.most > 0; };
  if (drawn(s.serving.input) || drawn(s.serving.output)) return {};  // other requests are longer
  auto more = s;
  more.serving.concurrency *= 2;
  more.serving.arrival_rate *= 2;
  if (s.serving.arrival_rate <= 0) more.serving.requests *= 2;
  const auto then = planned_estimate(more);
  if (then.saturated || then.preempted > 0) return {};
  if (now.saturated) return "twice the load is no overload";
  // Where prompts stop all decoding, those that come one by one stop it more often than those that
  // wait for one another: more load may shorten answers, but no first token.
  const bool apiece = s.serving.arrival_rate > 0 && !s.serving.limits.chunked_prefill;
  const auto& later = apiece ? then.ttft : then.e2e;
  const auto& sooner = apiece ? now.ttft : now.e2e;
  if (later.mean < sooner.mean * (1 - order_of_prompts))
    return fmt::format("twice the load: {} to {}", sooner.mean, later.mean);
  const double before = now.requests_per_s, after = then.requests_per_s;
  if (after < before * (1 - order_of_prompts))
    return fmt::format("twice the load: {} to {} requests/s", before, after);
  return {};
}

inline Law broken_scenario(const costmodel::ServingScenario& s) {
  const auto e = planned_estimate(s);
  if (Law law = broken_formats(s, e); law || !e.fits) return law;
  for (const Law& law : {broken_little(s.serving, e, "simulated"), broken_parts(e),
                         broken_latencies(s, e), broken_growth(s, e)}) {
    if (law) return law;
  }
  if (!s.plan.disaggregation) {
    const auto quick = quick_estimate(s, sizes_of(s));
    const bool arrives = s.serving.arrival_rate > 0;  // without end, in closed form
    if (Law law = broken_little(s.serving, quick, "closed form"); law && !arrives) return law;
    if (Law law = broken_parts(quick)) return law;
  }
  auto faster = s, larger = s;
  faster.cluster.device.memory_bandwidth = s.cluster.device.memory_bandwidth * 2.0;
  const bool apiece = s.serving.arrival_rate > 0 && !s.serving.limits.chunked_prefill;
  if (Law law = broken_order("twice the bandwidth", e, planned_estimate(faster), apiece))
    return law;
  larger.cluster.device.memory = s.cluster.device.memory * 1.25;
  return broken_order("a quarter more memory", e, planned_estimate(larger), apiece);
}

// No plan of the space with the scenario's own limits is better than the one that is chosen.
inline Law broken_plan(const costmodel::ServingScenario& s) {
  const auto found = planner::search_serving(s, 1);
  if (found.best.empty()) return {};
  const auto merit = [&](const costmodel::ServingEstimate& e) {
    return planner::merit_of(s.serving.goal, e.output_per_s, e.devices, e.tpot.mean).first;
  };
  const double best = merit(planned_estimate(planner::best_served(s, found)));
  const std::int64_t devices = planner::affordable_devices(s);
  for (const auto& sizes : planner::instance_sizes(s, devices, planner::may_take_fewer(s))) {
    const auto choice = planner::usual_choice(s, sizes, s.serving.weights);
    const auto own = with_choice(s, choice);
    if (!quick_estimate(own, sizes).fits) continue;
    const auto e = planned_estimate(own);
    if (!e.saturated && merit(e) > 1.01 * best)
      return fmt::format("plan: {} a device, and tp {} pp {} ep {} dp {} has {}", best, sizes.tp,
                         sizes.pp, sizes.ep, sizes.dp, merit(e));
  }
  return {};
}

// Whether the search looks at a scenario's own plan.
inline bool is_of_space(const costmodel::ServingScenario& written,
                        const costmodel::ServingScenario& open) {
  const auto devices = planner::affordable_devices(open);
  const bool fewer = planner::may_take_fewer(open);
  const auto all = planner::instance_sizes(open, devices, fewer || written.plan.disaggregation);
  const auto has = [&](const auto& sizes) { return std::ranges::find(all, sizes) != all.end(); };
  if (!written.plan.disaggregation) return has(sizes_of(written));
  const auto& [prefill, decode] = *written.plan.disaggregation;
  const auto idle = devices - prefill.devices() - decode.devices();
  return has(prefill) && has(decode) && idle >= 0 &&
         (fewer || idle < std::min(prefill.replica(), decode.replica()));
}

// What is asked is what the scenario's own plan reaches: the one that is chosen reaches it too, and
// is not worse.
inline Law broken_asked(const std::string& yaml) {
  const auto s = costmodel::read_serving(costmodel::parse_yaml(yaml, "law.yaml"), "law",
                                         costmodel::config_path({}));
  auto open = s;
  open.plan = {};
  if (!is_of_space(s, open)) return {};
  const auto own = planned_estimate(s);
  if (!own.fits || planner::worst_excess(s, own) > 1) return {};
  const auto merit = [&](const costmodel::ServingEstimate& e) {
    return planner::merit_of(s.serving.goal, e.output_per_s, e.devices, e.tpot.mean).first;
  };
  const auto found = planner::search_serving(open, 1);
  // One hundredth, and another that a disaggregated plan has to be better by.
  const double best = found.best.empty() ? 0 : merit(found.best.front().estimate);
  if (merit(own) <= 1.0201 * best) return {};
  return fmt::format("plan: {} a device, and the scenario's own has {}", best, merit(own));
}

// A scenario with a plan of its space, whose own latencies it asks for.
inline std::string asked_scenario(std::uint64_t seed) {
  ServingDice dice(seed);
  std::string text = serving_scenario(dice.below(1'000'000'000));
  text = text.substr(0, text.find("plan:"));
  const auto s = costmodel::read_serving(costmodel::parse_yaml(text, "law.yaml"), "law",
                                         costmodel::config_path({}));
  const auto devices = planner::affordable_devices(s);
  const auto drawn = [&](std::int64_t most, bool every) {
    const auto all = planner::instance_sizes(s, most, every);
    const auto z = all.empty() ? costmodel::ServingSizes{} : all[dice.below(all.size())];
    return std::pair{z.devices(),
                     fmt::format("{{tp: {}, pp: {}, ep: {}, dp: {}}}", z.tp, z.pp, z.ep, z.dp)};
  };
  const bool fewer = planner::may_take_fewer(s);
  if (devices > 1 && dice.one_in(2)) {
    const auto [taken, prefill] = drawn(devices - 1, true);
    text += fmt::format("plan: {{disaggregation: {{prefill: {}, decode: {}}}}}\n", prefill,
                        drawn(devices - taken, fewer).second);
  } else {
    text += fmt::format("plan: {}\n", drawn(devices, fewer).second);
  }
  const auto e = planned_estimate(costmodel::read_serving(costmodel::parse_yaml(text, "law.yaml"),
                                                          "law", costmodel::config_path({})));
  if (!e.fits || e.saturated) return text;
  const auto asked = [](const char* key, double mean) {
    return fmt::format("{}: {:.9g}", key, mean * 1.001);
  };
  const std::string first = asked("ttft_s", e.ttft.mean), next = asked("tpot_s", e.tpot.mean);
  std::string bound;
  switch (e.tpot.mean > 0 ? dice.below(4) : 0) {
    case 0: bound = first; break;
    case 1: bound = next; break;
    case 2: bound = first + ", " + next; break;
    default: bound = asked("e2e_s", e.e2e.mean);
  }
  return text.insert(text.find("plan:"), "  latency_bound: {" + bound + "}\n");
}

// The law that a scenario breaks. Throws ConfigError where it is refused.
inline Law broken_serving_law(const std::string& yaml) {
  const auto s = costmodel::read_serving(costmodel::parse_yaml(yaml, "law.yaml"), "law",
                                         costmodel::config_path({}));
  const bool open = !s.plan.tp && !s.plan.pp && !s.plan.ep && !s.plan.disaggregation;
  return open ? broken_plan(s) : broken_scenario(s);
}

}  // namespace laws
