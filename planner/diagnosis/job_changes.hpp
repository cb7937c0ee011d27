// What would make a job faster: the plans one step away and the switches that are off, the best few
// of them, and the best plan of all.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/estimate/estimate.hpp"
#include "costmodel/scenario/scenario.hpp"

namespace planner {

struct JobChange {
  std::string knob, change;   // "micro_batch", "1 -> 2"
  double ratio = 1;           // new iteration time over the present one, predicted
  double low = 1, high = 1;   // 90 % interval of it, by the spread between plans of one scenario
  double probability = 0;     // of being faster at all
  costmodel::Bytes peak;      // of the fullest device
  bool breaks_fixed = false;  // changes a key that the scenario fixes
};

// At most `most` changes that fit in memory and are predicted faster, best first.
std::vector<JobChange> helpful_changes(const costmodel::Scenario& scenario,
                                       const costmodel::Estimate& estimate, std::size_t most = 5);

// The best plan for the scenario, whatever its own plan fixes, as a change; its knob
// is empty. nullopt where stages or devices differ, where nothing fits, and when `stopped` says so.
struct BestPlan {
  costmodel::Estimate estimate;
  JobChange change;
};
std::optional<BestPlan> best_plan(const costmodel::Scenario& scenario,
                                  const costmodel::Estimate& estimate, int threads = 1,
                                  const std::function<bool()>& stopped = {});

}  // namespace planner
