// Whether a run replays its launches from graphs when its scenario requests it
// (training.overlap.cuda_graph), and the note that the run prints about it.
#pragma once

#include <string>

#include "runtime/devices/graph_cache.hpp"

namespace runtime {

// How the ranks of a run compute.
struct GraphSetting {
  bool on_gpus = false;
  int virtual_devices = 1;       // per GPU
  bool reducing_thread = false;  // a second thread reduces gradients concurrently
};

// Why launches are not replayed, with a remedy; "" when they are.
std::string graphs_refused(const GraphSetting& setting);

// One rank's result, as a sentence.
std::string graphs_note(const GraphCounts& counts);

}  // namespace runtime
