// The search for how to serve, and what a scenario asks of a plan.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "costmodel/serving/serving_estimate.hpp"
#include "costmodel/serving/step_time.hpp"
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
  // Those that keep all that is asked when simulated, by descending merit_of of that.
  std::vector<ServingCandidate> best;
  std::vector<ServingCandidate> nearest;  // simulated and missing it, the nearest first
  std::vector<ServingCandidate> front;    // ascending time a token: none is better in both
  // The best simulated with prompts on devices of their own, which is among `best` too, and the
  // best with both on the same; none: no such plan keeps what is asked.
  std::optional<ServingCandidate> apart, together;
  std::vector<ServingChoice> first;  // of each kind, in closed form
  std::size_t simulated = 0;  // and of these `broken` keep what is asked in closed form alone
  std::size_t broken = 0;
  // Where `best` is empty: all that leave room for a request, in closed form.
  std::vector<ServingCandidate> fitting;
  // With `max_model_len: auto`, the length of what is asked: the engine of a clearly better plan,
  // or of any, does not start with the model's own.
  bool length_asked = false;
  bool any_fits() const { return fit > 0; }
};

// What the closed form may be off by: such misses are simulated with those that keep what is asked,
// and where none of these does when simulated, nearer misses too. Far: where all are simulated.
inline constexpr double near_enough = 1.1, near_miss = 1.3, far_miss = 3;

// What misses by more in closed form is not simulated.
double worst_simulated(const costmodel::ServingSpec& serving);

// Plans of a ranking, where a user asks for no other number.
inline constexpr int usually_ranked = 5;

// Prices every point of serving_space and every pair of search_pools in closed form, so the best of
// them is proved under it, and simulates them from the best on until `top` keep what is asked; of
// so many requests, which have a beginning and an end, all sizes that come near the best, and the
// scenario's own limits always among theirs. Where none keeps what is asked, those that miss it by
// little in closed form. A disaggregated plan is the
// answer where it is better by more than a hundredth, for it needs two launches and a network.
// Throws ConfigError for a bound that no hardware keeps.
ServingSearch search_serving(const costmodel::ServingScenario& scenario, int top);

// The scenario as if max_model_len were `auto`; and with the best plan of a search, which has one.
costmodel::ServingScenario with_length_asked(costmodel::ServingScenario scenario);
costmodel::ServingScenario best_served(const costmodel::ServingScenario& scenario,
                                       const ServingSearch& found);

// Step times of the sizes and formats that a search meets, each made once: limits of the batch and,
// but where experts are spread over them, the number of replicas do not enter them.
class PricedSteps {
 public:
  // The scenario must outlive this.
  explicit PricedSteps(const costmodel::ServingScenario& scenario) : scenario_(scenario) {}

  const costmodel::StepTimes& of(const costmodel::ServingSizes& sizes,
                                 costmodel::WeightFormat format);

 private:
  struct Entry {
    costmodel::ServingSpec serving;
    costmodel::StepTimes times;
    Entry(const costmodel::ServingScenario& s, const costmodel::ServingSizes& sizes,
          costmodel::WeightFormat format);
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
  };
  const costmodel::ServingScenario& scenario_;
  std::map<std::tuple<int, int, int, int, costmodel::WeightFormat>, Entry> entries_;
};

// What a scenario asks of a plan, and whether what is reported keeps it.
struct AskedBound {
  std::string_view name, key;  // "first token", "latency_bound.ttft_s" of `serving`
  double limit = 0, reported = 0;
  bool kept = false;
  double excess = 0;  // how many times too much, or too little: kept up to 1
};

// The bounds that the scenario has, in the order of their keys. An open load above the capacity
// keeps none on latencies, which grow without end.
std::vector<AskedBound> asked_bounds(const costmodel::ServingScenario& scenario,
                                     const costmodel::ServingEstimate& estimate);

// "first token 2 s at most: missed (2.35 s)".
std::string to_string(const AskedBound& bound);

// Whether the mean latencies keep the bound.
bool keeps(const costmodel::ServingEstimate& estimate, const costmodel::LatencyBound& bound);

// The most of any bound and of the arrivals over the capacity: up to 1 all is kept.
double worst_excess(const costmodel::ServingScenario& scenario,
                    const costmodel::ServingEstimate& estimate);

}  // namespace planner
