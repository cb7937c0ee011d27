// The best plan of those whose every feature a published run of such a model has had: which a
// search's own best plan need not be, and then rests on the cost model alone.
#pragma once

#include <functional>
#include <optional>

#include "costmodel/scenario/scenario.hpp"
#include "planner/search/strategy.hpp"

namespace planner {

// `scenario` with the space of plans that have none of those features, as far as its own plan
// leaves them open; nothing where its search limits leave no such plan.
std::optional<costmodel::Scenario> without_features(costmodel::Scenario scenario,
                                                    costmodel::PlanFeatures features);

// Sets `unmeasured` and `measured` of a search's result: by a search of that space, where the
// chosen plan has a feature that ErrorBand::unmeasured lists.
void add_measured(Strategies& all, const costmodel::Scenario& scenario, const SearchMethod& method,
                  const std::function<bool()>& stopped = {});

}  // namespace planner
