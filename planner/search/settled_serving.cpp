#include "planner/search/settled_serving.hpp"

#include "planner/search/serving_search.hpp"

namespace planner {

using namespace costmodel;

std::optional<ServingScenario> settled_serving(const ServingScenario& s) {
  const bool open = !s.plan.tp && !s.plan.pp && !s.plan.ep && !s.plan.disaggregation;
  if (!open && !s.serving.weights_open) return s;
  const ServingSearch found = search_serving(s, usually_ranked);
  if (found.best.empty()) return std::nullopt;
  return with_choice(s, found.best.front().choice);
}

}  // namespace planner
