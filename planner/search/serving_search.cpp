#include "planner/search/serving_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/serving/serving_reader.hpp"
#include "planner/search/pool_search.hpp"

namespace planner {

using namespace costmodel;

namespace {

ServingMerit merit_in(const ServingScenario& s, const ServingCandidate& c) {
  return merit_of(s.serving.goal, c.estimate.output_per_s, c.estimate.devices, c.estimate.e2e.mean);
}

std::vector<ServingCandidate> front_of(std::vector<ServingCandidate> all) {
  const auto value = [](const ServingCandidate& c) { return c.estimate.per_device(); };
  std::ranges::sort(all, [&](const auto& a, const auto& b) {
    if (a.estimate.tpot.mean != b.estimate.tpot.mean)
      return a.estimate.tpot.mean < b.estimate.tpot.mean;
    return value(a) > value(b);
  });
  std::vector<ServingCandidate> front;
  for (const ServingCandidate& c : all) {
    if (front.empty() || value(c) > value(front.back()) * 1.001) front.push_back(c);
  }
  return front;
}

bool same_sizes(const ServingCandidate& a, const ServingCandidate& b) {
  return a.choice.sizes == b.choice.sizes && a.choice.weights == b.choice.weights &&
         a.choice.apart == b.choice.apart;
}

// One candidate for each sizes and format: rows of a ranking that differ in a limit alone say
// little.
bool has_sizes(const std::vector<ServingCandidate>& all, const ServingCandidate& c) {
  return std::ranges::any_of(all, [&](const auto& k) { return same_sizes(k, c); });
}

ServingCandidate simulated(const ServingScenario& s, const ServingChoice& choice) {
  ServingCandidate c{choice, planned_estimate(with_choice(s, choice)), false};
  c.keeps = c.estimate.fits && worst_excess(s, c.estimate) <= 1;
  return c;
}

// Whether the cache of a replica that decodes holds a request: other limits leave it other room.
bool holds_a_request(const ServingScenario& s, const ServingChoice& choice) {
  const ServingMemory memory = serving_memory(with_choice(s, choice), choice.sizes);
  return memory.fits() && memory.tokens >= s.serving.input.mean + s.serving.output.mean;
}

// What a disaggregated plan must be better by to be the answer.
constexpr double worth_two_launches = 1.01;

bool clearly_better(const ServingScenario& s, const ServingCandidate& apart,
                    const ServingCandidate& together) {
  ServingMerit other = merit_in(s, together);
  other.first *= other.first > 0 ? worth_two_launches : 1 / worth_two_launches;
  return merit_in(s, apart).first > other.first;
}

// Where it stands among those with both on the same devices: first, or behind the best.
void add_apart(const ServingScenario& s, ServingSearch& found) {
  const bool first = found.best.empty() || clearly_better(s, *found.apart, found.best.front());
  auto at = found.best.begin();
  if (!first) {
    at = std::find_if(found.best.begin() + 1, found.best.end(), [&](const ServingCandidate& c) {
      return merit_in(s, c) < merit_in(s, *found.apart);
    });
  }
  found.best.insert(at, *found.apart);
}

// Simulations that a search is worth, and those of the same sizes with other limits.
constexpr std::size_t most_simulated = 60, most_listed = 40, most_cheap = 400, most_of_sizes = 4;

void try_plan(const ServingScenario& s, const ServingCandidate& c, ServingSearch& found) {
  ++found.simulated;
  ServingCandidate tried = simulated(s, c.choice);
  found.broken += c.keeps && !tried.keeps ? 1 : 0;
  (tried.keeps ? found.best : found.nearest).push_back(tried);
}

// The best `most` of different sizes, by what is reported of them.
void keep_best_of_sizes(const ServingScenario& s, std::size_t most, ServingSearch& found) {
  std::ranges::stable_sort(
      found.best, [&](const auto& a, const auto& b) { return merit_in(s, a) > merit_in(s, b); });
  std::vector<ServingCandidate> distinct;
  for (const ServingCandidate& c : found.best)
    if (distinct.size() < most && !has_sizes(distinct, c)) distinct.push_back(c);
  found.best = std::move(distinct);
}

// In that order, until `most` keep what is asked; of the same sizes at most `of_sizes`.
void simulate(const ServingScenario& s, const std::vector<const ServingCandidate*>& order,
              std::size_t most, std::size_t of_sizes, ServingSearch& found) {
  const std::size_t limit = found.simulated + most_simulated;
  for (const ServingCandidate* c : order) {
    if (found.best.size() >= most || found.simulated >= limit) return;
    if (has_sizes(found.best, *c)) continue;
    const auto& missing = found.nearest;
    const auto seen = [&](const auto& k) { return k.choice == c->choice; };
    const auto alike = [&](const auto& k) { return same_sizes(k, *c); };
    if (std::ranges::any_of(missing, seen)) continue;
    const auto tried = std::ranges::count_if(missing, alike);
    if (static_cast<std::size_t>(tried) >= of_sizes) continue;
    try_plan(s, *c, found);
  }
}

// Of a run of so many requests the closed form knows neither the beginning nor the end, and is off
// by up to so much.
constexpr double run_margin = 1.3;
// ... where it costs little, all are simulated: runs of so few tokens, and answers as short as
// these, of which the closed form knows no more.
constexpr double few_tokens = 1e5, short_answer = 16;

bool is_cheap(const ServingSpec& s) {
  const auto requests = static_cast<double>(s.requests > 0 ? s.requests : s.concurrency);
  return s.output.mean < short_answer || (s.requests > 0 && requests * s.output.mean < few_tokens);
}

bool is_steady(const ServingSpec& s) {
  return s.requests == 0 && (s.arrival_rate > 0 || s.output.mean >= short_answer);
}
constexpr std::size_t most_refined = 4;  // sizes of which other limits are tried too

// Whether a plan may be better than the best simulated, by the closed form.
bool may_win(const ServingScenario& s, const ServingCandidate& c, double margin,
             const ServingSearch& found) {
  const double most = merit_in(s, c).first;
  return std::ranges::none_of(found.best, [&](const ServingCandidate& other) {
    return most > 0 && most * margin < merit_in(s, other).first && !is_cheap(s.serving);
  });
}

// Of each sizes and format the best limits in closed form and the scenario's own, then of the best
// sizes all limits that may be better.
void simulate_runs(const ServingScenario& s, const std::vector<const ServingCandidate*>& kept,
                   ServingSearch& found) {
  std::vector<const ServingCandidate*> first, own;
  for (const ServingCandidate* c : kept) {
    const ServingChoice& choice = c->choice;
    const bool usual = choice == usual_choice(s, choice.sizes, choice.weights);
    const bool known = std::ranges::any_of(first, [&](auto* k) { return same_sizes(*k, *c); });
    if (usual || !known) own.push_back(c);
    if (!known) first.push_back(c);
  }
  for (const ServingCandidate* c : own) {
    if (found.simulated < most_simulated && may_win(s, *c, run_margin, found))
      try_plan(s, *c, found);
  }
  keep_best_of_sizes(s, most_refined, found);
  const std::vector<ServingCandidate> refined = found.best;
  for (const ServingCandidate& sizes : refined) {
    for (const ServingCandidate* c : kept) {
      const bool tried = std::ranges::find(own, c) != own.end();
      if (tried || !same_sizes(*c, sizes) || found.simulated >= 2 * most_simulated) continue;
      if (may_win(s, *c, run_margin, found)) try_plan(s, *c, found);
    }
  }
}

// Of the sizes that were tried the scenario's own limits too, where those are among `kept`: of
// those that are ranked, and of those whose other limits miss what is asked, if they may be the
// best.
void simulate_own_limits(const ServingScenario& s, const std::vector<const ServingCandidate*>& kept,
                         ServingSearch& found) {
  std::vector<ServingCandidate> tried = found.best;
  tried.insert(tried.end(), found.nearest.begin(), found.nearest.end());
  for (const ServingCandidate& c : tried) {
    const ServingChoice own = usual_choice(s, c.choice.sizes, c.choice.weights);
    const auto is_own = [&](const ServingCandidate& k) { return k.choice == own; };
    const auto at = std::ranges::find_if(kept, [&](const auto* k) { return is_own(*k); });
    if (at == kept.end() || std::ranges::any_of(found.best, is_own) ||
        std::ranges::any_of(found.nearest, is_own))
      continue;
    if (c.keeps || may_win(s, **at, near_enough, found)) try_plan(s, **at, found);
  }
}

// The best of those that keep what is asked when simulated, `known` or listed: from the best in
// closed form on, until none may be better; while there is none, and of what is not steady, with
// the scenario's own limits too.
std::optional<ServingCandidate> best_of(const ServingScenario& s,
                                        const std::vector<PricedChoice>& listed,
                                        std::optional<ServingCandidate> known,
                                        ServingSearch& found) {
  std::vector<ServingChoice> tried;
  const auto simulate_one = [&](const ServingChoice& choice, bool kept) {
    if (std::ranges::find(tried, choice) != tried.end()) return;
    tried.push_back(choice);
    ServingCandidate c = simulated(s, choice);
    ++found.simulated;
    if (!c.keeps) {
      found.broken += kept ? 1 : 0;
      found.nearest.push_back(c);
    } else if (!known || merit_in(s, c) > merit_in(s, *known)) {
      known = c;
    }
  };
  const double margin = s.serving.arrival_rate > 0 ? 1 : near_enough;
  for (const auto& [merit, excess, choice] : listed) {
    const double most = merit.first * (merit.first > 0 ? margin : 1);
    if (tried.size() >= (is_cheap(s.serving) ? most_cheap : most_listed)) break;
    if (known && most < merit_in(s, *known).first) break;
    simulate_one(choice, excess <= 1);
    ServingChoice own = usual_choice(s, choice.sizes, choice.weights);
    own.apart = choice.apart;
    if ((!known || !is_steady(s.serving)) && holds_a_request(s, own)) simulate_one(own, false);
  }
  if (known) return known;
  // The best miss: those with the most room, by the closed form, may keep what is asked.
  std::vector<PricedChoice> roomiest = listed;
  std::ranges::stable_sort(roomiest, {}, &PricedChoice::excess);
  for (const PricedChoice& each : roomiest) {
    if (known || tried.size() >= 2 * most_listed) break;
    simulate_one(each.choice, each.excess <= 1);
  }
  return known;
}

// Where none keeps what is asked, or more than are simulated may.
void simulate_listed(const ServingScenario& s, const std::vector<ServingCandidate>& fit,
                     ServingSearch& found) {
  Shortlist near;
  for (const ServingCandidate& c : fit) {
    const double excess = worst_excess(s, c.estimate);
    if (excess <= worst_simulated(s.serving))
      near.take({merit_in(s, c), excess, c.choice}, c.estimate.devices);
  }
  std::optional<ServingCandidate> known;
  if (!found.best.empty()) known = found.best.front();
  if (const auto best = best_of(s, near.sorted(), known, found))
    found.best.insert(found.best.begin(), *best);
}

// Of the best plan's sizes the other limits that may be better: the closed form does not know what
// preemption and long batches cost.
void refine_limits(const ServingScenario& s, const std::vector<const ServingCandidate*>& kept,
                   ServingSearch& found) {
  if (found.best.empty()) return;
  const ServingCandidate best = found.best.front();
  std::size_t tried = 0;
  for (const ServingCandidate* c : kept) {
    const auto is_it = [&](const ServingCandidate& k) { return k.choice == c->choice; };
    if (tried == most_of_sizes) return;
    if (!same_sizes(*c, best) || std::ranges::any_of(found.best, is_it) ||
        std::ranges::any_of(found.nearest, is_it) || !may_win(s, *c, near_enough, found))
      continue;
    try_plan(s, *c, found);
    ++tried;
  }
}

void simulate_from_the_best(const ServingScenario& s, const std::vector<ServingCandidate>& fit,
                            const std::vector<const ServingCandidate*>& kept, std::size_t most,
                            ServingSearch& found) {
  if (!is_steady(s.serving)) simulate_runs(s, kept, found);
  if (found.best.empty()) {
    simulate(s, kept, std::max<std::size_t>(most, usually_ranked), most_of_sizes, found);
    simulate_own_limits(s, kept, found);
  }
  keep_best_of_sizes(s, most, found);
  if (is_steady(s.serving) && s.serving.arrival_rate <= 0) refine_limits(s, kept, found);
  keep_best_of_sizes(s, most, found);
  if (found.best.empty() || found.simulated >= most_simulated) simulate_listed(s, fit, found);
  keep_best_of_sizes(s, most, found);
}

void keep_nearest(const ServingScenario& s, std::size_t most, ServingSearch& found) {
  std::ranges::stable_sort(found.nearest, [&](const auto& a, const auto& b) {
    return worst_excess(s, a.estimate) < worst_excess(s, b.estimate);
  });
  std::vector<ServingCandidate> distinct;
  for (const ServingCandidate& c : found.nearest)
    if (distinct.size() < most && !has_sizes(distinct, c)) distinct.push_back(c);
  found.nearest = std::move(distinct);
}

// Where nothing that keeps a target of tokens a second was found: the best plans without one, of
// which some may reach it when simulated.
void add_without_target(const ServingScenario& s, int top, ServingSearch& found) {
  if (s.serving.goal.output_per_s <= 0) return;
  ServingScenario open = s;
  open.serving.goal.output_per_s = 0;
  ServingSearch free = search_serving(open, top);
  found.simulated += free.simulated;
  for (ServingCandidate& c : free.best) {
    c.keeps = worst_excess(s, c.estimate) <= 1;
    if (!c.keeps) continue;
    auto& of_kind = c.choice.apart ? found.apart : found.together;
    if (!of_kind) of_kind = c;
    found.best.push_back(c);
  }
}

}  // namespace

double worst_simulated(const ServingSpec& s) { return is_cheap(s) ? far_miss : near_miss; }

namespace {

// Every choice of the space that leaves room for a request, in closed form. `too_long`: the engines
// of some do not start with the scenario's length of a request.
std::vector<ServingCandidate> fitting_choices(const ServingScenario& scenario, PricedSteps& steps,
                                              std::size_t& choices, bool& too_long) {
  std::vector<ServingCandidate> fit;
  ServingScenario chosen = scenario;  // one for all: it holds tables
  for (const ServingChoice& choice : serving_space(scenario)) {
    ++choices;
    choose(choice, chosen);
    ServingCandidate c{choice,
                       quick_estimate(chosen, choice.sizes, steps.of(choice.sizes, choice.weights)),
                       false};
    if (!c.estimate.fits) continue;
    if (!c.estimate.memory.fits()) {
      too_long = true;
      continue;
    }
    c.keeps = worst_excess(scenario, c.estimate) <= 1;
    fit.push_back(c);
  }
  return fit;
}

ServingSearch search_at_length(const ServingScenario& scenario, int top, bool& too_long) {
  ServingSearch found;
  PricedSteps steps(scenario);
  std::vector<ServingCandidate> fit = fitting_choices(scenario, steps, found.choices, too_long);
  // Of arrivals it is the capacity that it does not know.
  const bool arrives = scenario.serving.arrival_rate > 0;
  const double missed_by = is_cheap(scenario.serving) ? far_miss
                           : arrives                  ? near_miss
                                                      : near_enough;
  std::vector<const ServingCandidate*> kept, near;
  for (const ServingCandidate& c : fit) {
    if (c.keeps) kept.push_back(&c);
    if (worst_excess(scenario, c.estimate) <= missed_by) near.push_back(&c);
  }
  for (auto* order : {&kept, &near}) {
    std::stable_sort(order->begin(), order->end(), [&](const auto* a, const auto* b) {
      return merit_in(scenario, *a) > merit_in(scenario, *b);
    });
  }
  const PoolSearch pools = search_pools(scenario, steps);
  found.apart_choices = pools.choices;
  found.choices += pools.choices;
  found.fit = fit.size() + pools.fit;
  found.keep = kept.size() + pools.keep;
  const auto most = static_cast<std::size_t>(std::max(1, top));
  simulate_from_the_best(scenario, fit, near, most, found);
  if (!found.best.empty()) found.together = found.best.front();
  if (!kept.empty()) found.first.push_back(kept.front()->choice);
  const auto first = std::ranges::find_if(pools.near, [](auto& pair) { return pair.excess <= 1; });
  if (first != pools.near.end()) found.first.push_back(first->choice);
  found.apart = best_of(scenario, pools.near, {}, found);
  keep_nearest(scenario, most, found);
  if (found.apart) {
    add_apart(scenario, found);
    if (found.best.size() > most) found.best.pop_back();
  }
  std::vector<ServingCandidate> steady;
  for (const ServingCandidate& c : fit) {
    if (!c.estimate.saturated) steady.push_back(c);
  }
  found.front = front_of(steady);
  if (found.best.empty()) add_without_target(scenario, top, found);
  if (!found.best.empty()) return found;
  for (const ServingChoice& choice : pools.extremes) fit.push_back(simulated(scenario, choice));
  found.fitting = std::move(fit);
  return found;
}

}  // namespace

ServingSearch search_serving(const ServingScenario& scenario, int top) {
  require_possible(scenario);
  require_pools(scenario);
  bool too_long = false;
  ServingSearch found = search_at_length(scenario, top, too_long);
  if (!too_long || !scenario.serving.length_usual) return found;
  const ServingScenario shorter = with_length_asked(scenario);
  ServingSearch other = search_at_length(shorter, top, too_long);
  const bool better = found.best.empty()
                          ? !other.best.empty() || found.fit == 0
                          : clearly_better(shorter, other.best.front(), found.best.front());
  if (!better) return found;
  other.length_asked = true;
  return other;
}

ServingScenario with_length_asked(ServingScenario s) {
  s.serving.max_model_len = longest_request(s.serving);
  s.serving.length_open = true;
  s.serving.length_usual = false;
  return s;
}

ServingScenario best_served(const ServingScenario& s, const ServingSearch& found) {
  return with_choice(found.length_asked ? with_length_asked(s) : s, found.best.front().choice);
}

namespace {

ServingSpec formatted(ServingSpec serving, WeightFormat format) {
  serving.weights = format;
  return serving;
}

}  // namespace

PricedSteps::Entry::Entry(const ServingScenario& s, const ServingSizes& sizes, WeightFormat format)
    : serving(formatted(s.serving, format)), times(s.model, s.cluster, serving, sizes) {}

const StepTimes& PricedSteps::of(const ServingSizes& sizes, WeightFormat format) {
  const int replicas = sizes.spreads_experts() ? sizes.dp : 0;
  const std::tuple key{sizes.tp, sizes.pp, sizes.ep, replicas, format};
  return entries_.try_emplace(key, scenario_, sizes, format).first->second.times;
}

namespace {

constexpr std::string_view latencies = "latency_bound.";

void add_at_most(std::string_view name, std::string_view key, double limit, double reported,
                 std::vector<AskedBound>& all) {
  if (limit > 0) all.push_back({name, key, limit, reported, reported <= limit, reported / limit});
}

}  // namespace

std::vector<AskedBound> asked_bounds(const ServingScenario& s, const ServingEstimate& e) {
  const auto& bound = s.serving.bound;
  const auto& goal = s.serving.goal;
  std::vector<AskedBound> all;
  add_at_most("first token", "latency_bound.ttft_s", bound.ttft.value, e.ttft.mean, all);
  add_at_most("next tokens", "latency_bound.tpot_s", bound.tpot.value, e.tpot.mean, all);
  add_at_most("answer", "latency_bound.e2e_s", bound.e2e.value, e.e2e.mean, all);
  for (AskedBound& latency : all) latency.kept = latency.kept && !e.saturated;
  if (goal.output_per_s > 0) {
    all.push_back({"tokens/s", "throughput_target", goal.output_per_s, e.output_per_s,
                   e.output_per_s >= goal.output_per_s,
                   goal.output_per_s / std::max(1e-12, e.output_per_s)});
  }
  add_at_most("dollars an hour", "budget.usd_per_hour", goal.usd_per_hour, e.usd_per_hour, all);
  add_at_most("dollars a million tokens", "budget.usd_per_million_tokens", goal.usd_per_million,
              e.usd_per_million_output, all);
  return all;
}

std::string to_string(const AskedBound& b) {
  const bool time = b.key.starts_with(latencies);
  const auto text = [&](double x) {
    if (time) return format_seconds(Seconds(x));
    return x >= 1000 ? format_integer(static_cast<long long>(x)) : fmt::format("{:.4g}", x);
  };
  const char* side = b.key == "throughput_target" ? "at least" : "at most";
  const std::string limit = time ? fmt::format("{} {}", b.name, text(b.limit))
                                 : fmt::format("{} {}", text(b.limit), b.name);
  return fmt::format(
      "{} {}: {} ({})", limit, side, b.kept ? "kept" : "missed",
      b.reported == without_end ? "overloaded, so it grows without end" : text(b.reported));
}

bool keeps(const ServingEstimate& e, const LatencyBound& bound) {
  const auto within = [](double mean, Seconds most) {
    return most.value <= 0 || mean <= most.value;
  };
  return e.fits && !e.saturated && within(e.ttft.mean, bound.ttft) &&
         within(e.tpot.mean, bound.tpot) && within(e.e2e.mean, bound.e2e);
}

double worst_excess(const ServingScenario& s, const ServingEstimate& e) {
  double worst = e.saturated ? s.serving.arrival_rate / e.capacity : 0;
  for (const AskedBound& bound : asked_bounds(s, e))
    if (bound.reported != without_end) worst = std::max(worst, bound.excess);
  return worst;
}

}  // namespace planner
