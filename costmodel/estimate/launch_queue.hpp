// The queue of launches: the host enqueues kernels while the device executes earlier ones. Where a
// pass keeps the device longer than the host needs to launch it, the host gains a lead, and a pass
// that it launches too slowly keeps the device waiting only when that lead is used up.
#pragma once

#include <cstdint>

#include "costmodel/base/units.hpp"

namespace costmodel {

// Of the passes of a micro-batch through all layers of a rank.
struct QueuedPass {
  Seconds waited;  // the device's waits for launches, with no lead
  Seconds gained;  // by what the other layers keep the device longer than the host
};

struct QueuedWork {
  QueuedPass forward, backward;  // of an iteration's micro-batch, recomputation with backward
  std::int64_t micro_batches = 1;
  // Of a forward in which the host waits for the device, as for the numbers of rows of experts:
  // what it gains after the last such wait. Negative: it does not wait.
  Seconds after_wait = Seconds(-1);
};

// Waits that the lead spares the device, a micro-batch in the mean of an iteration; the lead after
// the last one. An iteration begins with none.
struct QueueLead {
  Seconds forward, backward;
  Seconds left;
};

QueueLead queue_lead(const QueuedWork& work);

}  // namespace costmodel
