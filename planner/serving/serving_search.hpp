// The search for how to serve: sizes of a replica, replicas, the batch's limits and, where the
// scenario leaves it open, the weights' format.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "costmodel/serving/serving_estimate.hpp"

namespace planner {

// A point of the space.
struct ServingChoice {
  costmodel::ServingSizes sizes;
  costmodel::WeightFormat weights = costmodel::WeightFormat::bf16;
  std::int64_t max_num_seqs = 0, max_num_batched_tokens = 0;
  bool operator==(const ServingChoice&) const = default;
};

struct ServingCandidate {
  ServingChoice choice;
  costmodel::ServingEstimate estimate;  // the closed form's; of the best few the simulation's
  bool keeps = false;                   // the latency bound
};

struct ServingSearch {
  std::size_t choices = 0, fit = 0, keep = 0;
  std::vector<ServingCandidate> best;   // descending tokens/s a device, simulated
  std::vector<ServingCandidate> front;  // ascending time a token: none is better in both
  // The best plan's replicas split into ones for prompts and ones that decode, in closed form;
  // none: it has one replica only, or none of the splits keeps the bound.
  std::optional<costmodel::Disaggregation> split;
  costmodel::ServingEstimate split_estimate;
  std::vector<std::string> remedies;  // where `best` is empty
  bool any_fits() const { return fit > 0; }
};

// All points: tp in divisors of the heads, pp up to the layers, ep 1, tp or tp · dp, as many
// replicas as there are devices for, powers of two of the limits that are not written, formats that
// the device multiplies. With an arrival rate or a concurrency the fewest replicas are tried too.
std::vector<ServingChoice> serving_space(const costmodel::ServingScenario& scenario);

// The scenario with a choice written into it.
costmodel::ServingScenario with_choice(costmodel::ServingScenario scenario,
                                       const ServingChoice& choice);

// Prices every point in closed form, so the best of them is proved under it, and simulates the
// first `top`. Without an arrival rate the most tokens a second and device win; with one, which
// all that keep up serve alike, the cheapest, so the fewest devices. Throws ConfigError for a bound
// that no hardware keeps.
ServingSearch search_serving(const costmodel::ServingScenario& scenario, int top);

}  // namespace planner
