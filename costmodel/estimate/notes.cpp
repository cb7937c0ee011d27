#include "costmodel/estimate/notes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "costmodel/base/unit_text.hpp"

namespace costmodel {

std::vector<std::string> notes_of(const Workload& on, const Offload& offload) {
  std::vector<std::string> notes;
  if (offload.layers > 0) {
    notes.push_back(fmt::format("activations of {} of {} layers wait in host memory",
                                offload.layers, on.model.layers));
  }
  if (!on.model.assumed.empty()) {
    notes.push_back(fmt::format("model: the {} family's usual {}",
                                model_kind_names[static_cast<std::size_t>(on.model.kind)],
                                fmt::join(on.model.assumed, ", ")));
  }
  if (on.training.overlap.cuda_graph) {
    const Seconds each = on.cluster.device.graph_kernel_launch;
    notes.push_back(fmt::format(
        "cuda_graph: launches are replayed, {}",
        each > Seconds(0) ? fmt::format("{} a kernel at least", format_seconds(each))
                          : "and cost nothing: the device's file has no launch.graph_kernel_s"));
  }
  if (on.training.fine_tuning.adapts()) {
    notes.push_back(
        "fine-tuning: model FLOPs and MFU count what is computed, two thirds of a frozen product's "
        "(no weight gradient) and the adapters");
  }
  for (const auto& assumption : on.training.assumed) notes.push_back("training: " + assumption);
  for (const auto& assumption : on.cluster.assumed) notes.push_back("cluster: " + assumption);
  if (const OwnRuns& own = on.cluster.measured; own.time_factor != 1) {
    notes.push_back(
        fmt::format("cluster.measured: all times are {:.4g} times what the formulas say, by {} "
                    "run{} of its own",
                    own.time_factor, own.runs, own.runs == 1 ? "" : "s"));
  }
  notes.push_back(on.training.error_band.basis);
  notes.push_back(on.training.peak_errors.basis);
  return notes;
}

}  // namespace costmodel
