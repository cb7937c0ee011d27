#include "planner/search/device_ladder.hpp"

#include <algorithm>
#include <cmath>

#include "costmodel/estimate/evaluator.hpp"
#include "planner/search/device_front.hpp"

namespace planner {

using namespace costmodel;

namespace {

class Climb {
 public:
  Climb(const Scenario& scenario, const RunLimits& limits, const SearchMethod& method,
        const std::function<bool()>& stopped)
      : scenario_(scenario), limits_(limits), method_(method), stopped_(stopped) {}

  // Whether so many devices keep the limits; false too once stopped.
  bool keep(std::int64_t devices) {
    if (over()) return false;
    Rung rung;
    rung.devices = devices;
    Scenario s = scenario_;
    s.cluster = resized(scenario_.cluster, devices);
    rung.best = chosen_plan(s, method_, stopped_);
    if (over()) return false;
    if (rung.best) {
      const auto goodput = costmodel::goodput(*rung.best, s.cluster, s.training);
      rung.run = *training_run(*rung.best, goodput, s.cluster, s.training);
      rung.keeps = (limits_.days == 0 || rung.run.days_with_failures <= limits_.days) &&
                   (limits_.usd == 0 || rung.run.usd.value_or(HUGE_VAL) <= limits_.usd);
    }
    ladder_.rungs.push_back(std::move(rung));
    return ladder_.rungs.back().keeps;
  }
  bool over() {
    ladder_.interrupted = ladder_.interrupted || (stopped_ && stopped_());
    return ladder_.interrupted;
  }
  DeviceLadder ended() {
    auto& rungs = ladder_.rungs;
    std::ranges::sort(rungs, {}, &Rung::devices);
    for (std::size_t i = 0; i < rungs.size(); ++i) {
      if (!rungs[i].keeps) continue;
      const bool better = !ladder_.chosen ||
                          (limits_.usd > 0 && *rungs[i].run.usd < *rungs[*ladder_.chosen].run.usd);
      if (better) ladder_.chosen = i;
    }
    return std::move(ladder_);
  }

 private:
  const Scenario& scenario_;
  const RunLimits& limits_;
  const SearchMethod& method_;
  const std::function<bool()>& stopped_;
  DeviceLadder ladder_;
};

// The most devices that cannot end in time even if all computed the model at their peak.
std::int64_t hopeless(const Scenario& s, double days) {
  if (days == 0) return 0;
  const Evaluator evaluator(s.model, s.cluster, s.training);
  const double iterations =
      s.training.run_tokens / static_cast<double>(s.training.global_batch * s.training.tokens());
  constexpr double causal = 0.5;  // no kernel skips more than half of attention
  const double seconds = iterations * causal * evaluator.model_flops().value /
                         s.cluster.device.peak_of(s.training.precision).value;
  return static_cast<std::int64_t>(seconds / (days * 86'400));
}

}  // namespace

DeviceLadder device_ladder(const Scenario& s, const RunLimits& limits, const SearchMethod& method,
                           const std::function<bool()>& stopped) {
  Climb climb(s, limits, method, stopped);
  const bool fewest = limits.usd == 0;
  const std::int64_t node = std::min(s.cluster.devices_per_node, s.cluster.devices);
  std::int64_t below = fewest ? hopeless(s, limits.days) : 0, enough = 0;
  for (const std::int64_t n : device_counts(s.cluster)) {
    if (n <= below && n != s.cluster.devices) continue;
    const bool keeps = climb.keep(n);
    if (climb.over()) break;
    if (keeps && fewest) {
      enough = n;
      break;
    }
    below = n;
  }
  constexpr std::int64_t parts = 8;
  while (fewest && enough > node && enough - below > node && !climb.over()) {
    const std::int64_t step = std::max<std::int64_t>(1, (enough - below) / node / parts) * node;
    const std::int64_t first = below / node * node + step, last = enough;
    for (std::int64_t n = first; n < last && enough == last; n += step) {
      if (climb.keep(n)) {
        enough = n;
      } else {
        below = n;
      }
    }
    if (step == node) break;
  }
  return climb.ended();
}

}  // namespace planner
