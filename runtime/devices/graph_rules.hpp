// Whether a run replays its launches from graphs where its scenario asks for it
// (training.overlap.cuda_graph), and what is said of that.
#pragma once

#include <string>

#include "runtime/devices/graph_cache.hpp"

namespace runtime {

// How the ranks of a run compute.
struct GraphSetting {
  bool on_gpus = false;
  int virtual_devices = 1;       // of each GPU
  bool reducing_thread = false;  // gradients are summed by a thread beside the rank's
};

// Why none is replayed, with a remedy; "" where they are.
std::string graphs_refused(const GraphSetting& setting);

// What came of it, of one rank.
std::string graphs_note(const GraphCounts& counts);

}  // namespace runtime
