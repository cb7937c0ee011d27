// The search for how to serve.
#pragma once

#include <optional>
#include <vector>

#include "costmodel/serving/serving_estimate.hpp"
#include "planner/search/serving_space.hpp"

namespace planner {

struct ServingCandidate {
  ServingChoice choice;
  costmodel::ServingEstimate estimate;  // the closed form's; of the best few the simulation's
  bool keeps = false;                   // the latency bound, the target and the budget, by it
};

struct ServingSearch {
  std::size_t choices = 0, fit = 0, keep = 0;  // of both kinds
  std::size_t apart_choices = 0;               // of these with prompts on devices of their own
  // Those that keep all that is asked by what is reported of them: simulated, but where prompts are
  // apart. By descending merit_of of that.
  std::vector<ServingCandidate> best;
  std::vector<ServingCandidate> nearest;  // simulated and missing it, the nearest first
  std::vector<ServingCandidate> front;    // ascending time a token: none is better in both
  // The best plan with prompts on devices of their own, which is among `best` too, and the best
  // with both on the same; none: no such plan keeps what is asked.
  std::optional<ServingCandidate> apart, together;
  bool apart_ahead = false;   // of `together` under the closed form, by however little
  std::size_t simulated = 0;  // and of these `broken` keep what is asked in closed form alone
  std::size_t broken = 0;
  // Where `best` is empty: all that leave room for a request, in closed form.
  std::vector<ServingCandidate> fitting;
  bool any_fits() const { return fit > 0; }
};

// Plans of a ranking, where a user asks for no other number.
inline constexpr int usually_ranked = 5;

// Prices every point of serving_space and every pair of search_pools in closed form, so the best of
// them is proved under it, and simulates them from the best on until `top` keep what is asked;
// where none does, those that miss it by little in closed form. A plan with prompts apart is the
// answer where it is better by more than a hundredth, for it needs two launches and a network.
// Throws ConfigError for a bound that no hardware keeps.
ServingSearch search_serving(const costmodel::ServingScenario& scenario, int top);

}  // namespace planner
