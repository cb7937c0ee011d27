#include <fmt/format.h>
#include <fmt/ranges.h>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/estimate/evaluator.hpp"

namespace costmodel {

// The assumptions, and what the framework changes by itself, for the plan of the last call of
// cost().
std::vector<std::string> Evaluator::notes() const {
  std::vector<std::string> notes;
  if (cost_.offloaded_layers > 0) {
    notes.push_back(fmt::format("activations of {} of {} layers wait in host memory",
                                cost_.offloaded_layers, model_.layers));
  }
  if (!model_.assumed.empty()) {
    notes.push_back(fmt::format("model: the {} family's usual {}",
                                model_kind_names[static_cast<std::size_t>(model_.kind)],
                                fmt::join(model_.assumed, ", ")));
  }
  if (training_.overlap.cuda_graph) {
    const Seconds each = cluster_.device.graph_kernel_launch;
    notes.push_back(fmt::format(
        "cuda_graph: launches are replayed, {}",
        each > Seconds(0) ? fmt::format("{} a kernel at least", format_seconds(each))
                          : "and cost nothing: the device's file has no launch.graph_kernel_s"));
  }
  for (const auto& assumption : training_.assumed) notes.push_back("training: " + assumption);
  for (const auto& assumption : cluster_.assumed) notes.push_back("cluster: " + assumption);
  notes.push_back(training_.error_band.basis);
  return notes;
}

}  // namespace costmodel
