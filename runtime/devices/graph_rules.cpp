#include "runtime/devices/graph_rules.hpp"

#include <fmt/format.h>

namespace runtime {

std::string graphs_refused(const GraphSetting& setting) {
  constexpr const char* refused = "overlap.cuda_graph is left out: {}";
  if (!setting.on_gpus)
    return fmt::format(refused, "it replays launches of a GPU; use --backend cuda");
  if (setting.virtual_devices > 1) {
    return fmt::format(refused,
                       "CUDA does not say that a graph's kernels keep to a part of a GPU; leave "
                       "--virtual-devices out");
  }
  if (setting.reducing_thread) {
    return fmt::format(
        refused,
        "a thread that sums gradients by way of the host shares the compute stream; "
        "give each rank a GPU of its own, or set overlap.overlap_grad_reduce: false");
  }
  return "";
}

std::string graphs_note(const GraphCounts& counts) {
  return fmt::format(
      "launches of rank 0: {} graphs captured and replayed {} times, {} stretches launched "
      "one kernel after the other{}",
      counts.captured, counts.replayed, counts.done,
      counts.refused.empty() ? "" : "; some are never captured: " + counts.refused);
}

}  // namespace runtime
