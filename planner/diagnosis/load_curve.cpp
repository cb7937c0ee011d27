#include "planner/diagnosis/load_curve.hpp"

#include <algorithm>

namespace planner {

using namespace costmodel;

std::vector<LoadPoint> load_curve(const ServingScenario& s, const ServingSizes& sizes) {
  const ServingSpec& serving = s.serving;
  const auto memory = serving_memory(s, sizes);
  std::vector<LoadPoint> curve;
  if (!memory.fits()) return curve;
  const StepTimes times(s.model, s.cluster, serving, sizes);
  const double most = std::min(static_cast<double>(serving.limits.max_num_seqs),
                               std::max(1.0, requests_held(memory, serving)));
  for (double n = 1; n < 2 * most; n *= 2) {
    const double at = std::min(n, most);
    const SteadyState state = steady_state(times, serving, memory, at);
    curve.push_back({at * sizes.dp, state.requests_per_s * sizes.dp, state.output_per_s * sizes.dp,
                     state.ttft, state.tpot});
  }
  return curve;
}

}  // namespace planner
