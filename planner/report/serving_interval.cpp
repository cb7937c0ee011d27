#include "planner/report/serving_interval.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace planner {

using namespace costmodel;

std::string evidence_note(const ServingScenario& s, const ServingFit& fit) {
  if (fit.factors.empty()) return "";
  // A fit moves the constants of what was measured.
  const auto measured = [&](const std::string& name) {
    const auto at = fit.factors.find(name);
    return at != fit.factors.end() &&
           std::ranges::any_of(at->second, [](double factor) { return factor != 1; });
  };
  const std::string& device = s.cluster.device.name;
  const std::string& engine = s.serving.engine.family;
  if (measured(device) && measured(engine)) return "";
  return fmt::format(
      "no measurement of {} is among them: the interval is that of others, and such a plan may lie "
      "outside it more often",
      !measured(device) && !measured(engine) ? device + " or of " + engine
      : measured(device)                     ? engine
                                             : device);
}

std::array<double, 2> output_interval(const ServingScenario& s, const ServingEstimate& e,
                                      const std::array<double, 2>& rate) {
  if (s.serving.arrival_rate <= 0) return {e.output_per_s * rate[0], e.output_per_s * rate[1]};
  const double able = std::max(e.output_per_s, e.capacity * s.serving.output.mean);
  const double asked = s.serving.arrival_rate * s.serving.output.mean;
  return {std::min(e.output_per_s, able * rate[0]),
          std::max(e.output_per_s, std::min(asked, able * rate[1]))};
}

}  // namespace planner
