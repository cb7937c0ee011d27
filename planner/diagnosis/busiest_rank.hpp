// The pipeline rank that works longest. The breakdown of an iteration is that of the rank that ends
// last, which may be a light one that waits: what limits the time is then read off this one.
#pragma once

#include <optional>

#include "costmodel/estimate/estimate.hpp"

namespace costmodel {
class Evaluator;
}  // namespace costmodel

namespace planner {

struct BusiestRank {
  int rank = 0;
  costmodel::Breakdown breakdown;  // sums to the iteration; all of its waiting is in the bubble
};

// Where the rank that ends last waits for it for at least this part of the iteration, and loses
// more to one thing at most.
inline constexpr double least_wait = 0.01;

// Nothing where it does not, or pipelines differ. `evaluator` is the estimate's.
std::optional<BusiestRank> busiest_rank(const costmodel::Estimate& estimate,
                                        costmodel::Evaluator& evaluator);

}  // namespace planner
