#include "planner/search/stage_pace.hpp"

#include <algorithm>

#include "costmodel/schedule/closed_form.hpp"

namespace planner {

using namespace costmodel;

namespace {

// A lower bound on the ratio of what a stage's devices compute in a pipeline of `longer` stages and
// in one of `stages`.
double quickest_share(const ClusterSpec& devices, std::int64_t micro_batches, int stages,
                      int longer) {
  const auto busy = [&](int count) {
    return 1 / (1 + bubble_fraction(usual_schedule(1), count, 1, micro_batches));
  };
  const DeviceSpec& device = devices.device;
  const auto boosted = [&](int count) { return 1 - device.idle_boost * (1 - busy(count)); };
  const auto others = static_cast<double>(std::min(devices.devices, devices.devices_per_node)) - 1;
  const auto together = [&](int count) {
    return device.together.empty() ? 1 : slowdown_together(device, 1 + others * busy(count));
  };
  return std::min(1.0, boosted(longer) / boosted(stages)) *
         std::min(1.0, together(longer) / together(stages));
}

}  // namespace

StageOption in_pipeline(StageOption option, const ClusterSpec& devices, std::int64_t micro_batches,
                        int stages) {
  if (stages <= option.stages) return option;
  const double saved = 1 - quickest_share(devices, micro_batches, option.stages, stages);
  option.forward -= saved * option.computed_forward;
  option.backward -= saved * option.computed_backward;
  return option;
}

bool waits_differ(const ClusterSpec& devices, std::int64_t micro_batches, int few, int many) {
  constexpr double little = 1e-4;
  return few < many && quickest_share(devices, micro_batches, few, many) < 1 - little;
}

}  // namespace planner
