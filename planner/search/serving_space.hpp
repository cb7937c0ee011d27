// The space of ways to serve: sizes of a replica, replicas, the batch's limits and, where the
// scenario leaves it open, the weights' format; and what makes one of them better.
#pragma once

#include <compare>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "costmodel/serving/serving_spec.hpp"

namespace planner {

// A point of the space.
struct ServingChoice {
  costmodel::ServingSizes sizes;  // of those that decode, where prompts are apart
  costmodel::WeightFormat weights = costmodel::WeightFormat::bf16;
  std::int64_t max_num_seqs = 0, max_num_batched_tokens = 0;
  std::optional<costmodel::Disaggregation> apart;
  bool operator==(const ServingChoice&) const = default;
};

// Writes a choice into a scenario.
void choose(const ServingChoice& choice, costmodel::ServingScenario& scenario);

// The scenario with a choice written into it.
costmodel::ServingScenario with_choice(costmodel::ServingScenario scenario,
                                       const ServingChoice& choice);

// Devices that a plan may take: the cluster's, or those that the budget pays for.
std::int64_t affordable_devices(const costmodel::ServingScenario& scenario);

// Numbers tried up to `most`: all up to 32, then eighths between powers of two, and `most`.
std::vector<int> counts_up_to(std::int64_t most);

// Sizes of instances on at most `devices`: tp in powers of two that divide the heads, pp in powers
// of two up to 16 and the layers, ep 1, tp or tp · dp, and any of counts_up_to instances; what the
// plan says is taken as it is. `every` is false: as many instances as there are devices for, alone.
std::vector<costmodel::ServingSizes> instance_sizes(const costmodel::ServingScenario& scenario,
                                                    std::int64_t devices, bool every);

std::vector<costmodel::WeightFormat> formats_of(const costmodel::ServingScenario& scenario);
std::vector<std::int64_t> batches_of(const costmodel::ServingScenario& scenario);

// Whether fewer devices than there are may be the answer: with an arrival rate, a target or a
// budget.
bool may_take_fewer(const costmodel::ServingScenario& scenario);

// The scenario's own limits of a replica: the engine's, where it has none.
ServingChoice usual_choice(const costmodel::ServingScenario& scenario,
                           const costmodel::ServingSizes& sizes, costmodel::WeightFormat format);

// All points with prompts and decoding on the same devices (none where the plan says pools), of
// every number of replicas where fewer devices may be the answer.
std::vector<ServingChoice> serving_space(const costmodel::ServingScenario& scenario);

// Greater is better. With a target the fewest devices, then the most tokens/s; with a budget an
// hour the most tokens/s, then the fewest devices; else the most tokens/s a device, which of an
// open load, answered alike by all that keep up, are the fewest devices. Then the shorter time of
// an answer, in which a wait for a place in the batch counts.
struct ServingMerit {
  double first = 0, second = 0, third = 0;
  auto operator<=>(const ServingMerit&) const = default;
};
ServingMerit merit_of(const costmodel::ServingGoal& goal, double output_per_s, std::int64_t devices,
                      double answer);

// A choice in closed form.
struct PricedChoice {
  ServingMerit merit;
  double excess = 0;  // the most that anything asked is missed by (worst_excess)
  ServingChoice choice;
};

// What is worth a simulation of many choices: of each number of devices and each band of excess the
// best few by merit, of the same sizes one. So what the closed form is off by may grow with the
// excess or with nothing: less merit with more room is there too.
class Shortlist {
 public:
  bool takes(const ServingMerit& merit, double excess, std::int64_t devices) const;
  void take(const PricedChoice& choice, std::int64_t devices);

  // The best first; of equal ones, as many devices that keep up with what arrives, some few with
  // the most room.
  std::vector<PricedChoice> sorted() const;

 private:
  using Place = std::pair<std::int64_t, int>;  // devices, band
  std::map<Place, std::vector<PricedChoice>> ranked_;
};

}  // namespace planner
