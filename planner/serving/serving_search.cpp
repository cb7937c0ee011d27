#include "planner/serving/serving_search.hpp"

#include <algorithm>

#include "planner/serving/pool_search.hpp"
#include "planner/serving/serving_remedies.hpp"

namespace planner {

using costmodel::ServingEstimate;
using costmodel::ServingScenario;

namespace {

ServingMerit merit_in(const ServingScenario& s, const ServingCandidate& c) {
  return merit_of(s.serving.goal, c.estimate.output_per_s, c.estimate.devices,
                  c.estimate.tpot.mean);
}

std::vector<ServingCandidate> front_of(std::vector<ServingCandidate> all) {
  const auto value = [](const ServingCandidate& c) { return c.estimate.per_device(); };
  std::sort(all.begin(), all.end(), [&](const auto& a, const auto& b) {
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

// One candidate for each sizes and format: rows of a ranking that differ in a limit alone say
// little.
std::vector<ServingCandidate> distinct(const std::vector<ServingCandidate>& sorted,
                                       std::size_t most) {
  std::vector<ServingCandidate> kept;
  for (const ServingCandidate& c : sorted) {
    const bool seen = std::any_of(kept.begin(), kept.end(), [&](const ServingCandidate& k) {
      return k.choice.sizes == c.choice.sizes && k.choice.weights == c.choice.weights &&
             k.choice.apart == c.choice.apart;
    });
    if (!seen) kept.push_back(c);
    if (kept.size() == most) break;
  }
  return kept;
}

ServingCandidate priced(const ServingScenario& s, const ServingChoice& choice) {
  return {choice, disaggregated_estimate(with_choice(s, choice)), true};
}

// What a plan with prompts apart must be better by to be the answer.
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

void simulate_best(const ServingScenario& s, ServingSearch& found) {
  const auto asked = [&](const ServingEstimate& e) {
    return keeps(e, s.serving.bound) && reaches(e, s.serving.goal);
  };
  for (ServingCandidate& c : found.best) {
    if (c.choice.apart) continue;
    c.estimate = serving_estimate(with_choice(s, c.choice), c.choice.sizes);
    c.keeps = asked(c.estimate);
  }
  const auto first = std::find_if(found.best.begin(), found.best.end(),
                                  [](const ServingCandidate& c) { return c.keeps; });
  found.broken = static_cast<std::size_t>(first - found.best.begin());
  if (first == found.best.end()) return;
  std::stable_partition(found.best.begin(), found.best.end(),
                        [](const ServingCandidate& c) { return c.keeps; });
}

}  // namespace

ServingSearch search_serving(const ServingScenario& scenario, int top) {
  require_possible(scenario);
  require_pools(scenario);
  ServingSearch found;
  PricedSteps steps(scenario);
  std::vector<ServingCandidate> fit, kept;
  ServingScenario chosen = scenario;  // one for all: it holds tables
  for (const ServingChoice& choice : serving_space(scenario)) {
    ++found.choices;
    choose(choice, chosen);
    ServingCandidate c{choice,
                       quick_estimate(chosen, choice.sizes, steps.of(choice.sizes, choice.weights)),
                       false};
    if (!c.estimate.fits) continue;
    c.keeps =
        keeps(c.estimate, scenario.serving.bound) && reaches(c.estimate, scenario.serving.goal);
    if (c.keeps) kept.push_back(c);
    fit.push_back(std::move(c));
  }
  const PoolSearch pools = search_pools(scenario, steps);
  found.apart_choices = pools.choices;
  found.choices += pools.choices;
  found.fit = fit.size() + pools.fit;
  found.keep = kept.size() + pools.keep;
  std::stable_sort(kept.begin(), kept.end(), [&](const auto& a, const auto& b) {
    return merit_in(scenario, a) > merit_in(scenario, b);
  });
  const auto most = static_cast<std::size_t>(std::max(1, top));
  found.best = distinct(kept, most);
  if (!found.best.empty()) found.together = found.best.front();
  if (pools.best) {
    found.apart = priced(scenario, *pools.best);
    found.apart_ahead =
        !found.together || merit_in(scenario, *found.apart) > merit_in(scenario, *found.together);
    add_apart(scenario, found);
    if (found.best.size() > most) found.best.pop_back();
  }
  simulate_best(scenario, found);
  std::vector<ServingCandidate> steady;
  for (const ServingCandidate& c : fit) {
    if (!c.estimate.saturated) steady.push_back(c);
  }
  found.front = front_of(steady);
  if (!found.best.empty()) return found;
  for (const ServingChoice& choice : pools.extremes) fit.push_back(priced(scenario, choice));
  found.remedies = serving_remedies(scenario, fit);
  return found;
}

}  // namespace planner
