// How many devices a training run needs: the best plan on ever more of them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "costmodel/estimate/training_run.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/search/strategy.hpp"

namespace planner {

// What a run must keep. 0: no limit.
struct RunLimits {
  double days = 0;  // failures included
  double usd = 0;
  bool any() const { return days > 0 || usd > 0; }
};

// A number of devices that was tried.
struct Rung {
  std::int64_t devices = 0;
  std::optional<costmodel::Estimate> best;  // nothing: no plan fits
  costmodel::TrainingRun run;               // of that plan
  bool keeps = false;                       // all limits
};

struct DeviceLadder {
  std::vector<Rung> rungs;            // ascending
  std::optional<std::size_t> chosen;  // of `rungs`; nothing: none keeps the limits
  bool interrupted = false;           // `stopped` said so; then not all were tried
};

// Tries whole nodes (below one, powers of two): 1, 2, 3, 4, 6, 8, 12 ... of them, up to the
// scenario's devices. With a limit in dollars it chooses the cheapest that keeps the limits. With
// days alone it chooses the fewest: it leaves out what would take longer even at the peak of all
// devices, ends at the first that keeps them, and tries between it and the one before, ever finer
// down to single nodes. A number that was not tried may keep the limits where fewer than chosen
// divide the batch better. For stages that are alike on devices of one kind, of a scenario with
// training.run_tokens; a limit in dollars needs a price. Polls `stopped`.
DeviceLadder device_ladder(const costmodel::Scenario& scenario, const RunLimits& limits,
                           const SearchMethod& method = {},
                           const std::function<bool()>& stopped = {});

}  // namespace planner
