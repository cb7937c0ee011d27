// Which number the answer hangs on: each input of the prices moved by its own uncertainty, the plan
// priced again and, of a search, the best plan searched again. One at a time, which tells nothing
// of inputs that act together: A. Saltelli, P. Annoni, How to avoid a perfunctory sensitivity
// analysis, Environmental Modelling & Software 25 (2010) 1508-1517.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/estimate/estimate.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/diagnosis/priced_inputs.hpp"

namespace planner {

// Where, as an input moves from its value, another plan becomes the best.
struct PlanChange {
  double value = 0;  // of the input: the first plan is the best up to here, within a thousandth of
                     // what was searched
  std::optional<costmodel::Estimate> best;  // the best plan just beyond; nothing: none fits
  bool inside = false;                      // within the input's uncertainty
  // At the end of what was searched, of the first plan: whether it fits, and how much longer it
  // takes than the best plan there, relatively.
  bool fits = true;
  double loss = 0;
};

struct InputEffect {
  PricedInput input;
  costmodel::Seconds at_low, at_high;  // the plan kept
  double effect = 0;                   // the larger change of the iteration, relatively
  std::optional<PlanChange> below, above;
};

struct Sensitivity {
  costmodel::Estimate plan;  // what is moved, as priced
  bool searched = false;     // whether the best plan was searched again
  std::vector<InputEffect> inputs =
      {};  // those with an effect, or with another plan: largest first
  std::vector<std::string> unmoved = {};  // keys of the others: they change nothing
  bool interrupted = false;               // `stopped` said so; then not all inputs are there
};

// The plan's iteration as each input moves.
Sensitivity sensitivity(const costmodel::Scenario& scenario, const costmodel::Estimate& plan,
                        const std::vector<StatedSpread>& stated);

// How many of the inputs with the largest effects are also moved beyond their uncertainty, by this
// factor, until another plan is best.
inline constexpr std::size_t moved_far = 8;
inline constexpr double far_factor = 4;

// The same of the first of `ranked`, the plans of the scenario's search, best first, and where
// another becomes the best. Each end of an uncertainty is a search of its own: over the even plans
// and `ranked`, for to search all layouts a few hundred times takes minutes. Between an end with
// another plan and the value bisection finds where it changes. Should the best plan change more
// than once on the way, it is one of these places. On `threads` threads, which do not change the
// answer. Polls `stopped`.
Sensitivity sensitivity_of_search(const costmodel::Scenario& scenario,
                                  const std::vector<costmodel::Estimate>& ranked,
                                  const std::vector<StatedSpread>& stated, int threads,
                                  const std::function<bool()>& stopped = {});

}  // namespace planner
