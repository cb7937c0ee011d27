// What the ranks of a run of serving measured, brought together on rank 0.
#pragma once

#include <cstdint>
#include <vector>

#include "costmodel/base/units.hpp"
#include "runtime/backend/transport.hpp"
#include "runtime/ranks/collectives.hpp"

namespace runtime {

// Of one batch on one rank.
struct ServedMeasurement {
  costmodel::Seconds first_token, end;  // of all requests, since all ranks began together
  std::vector<std::int64_t> tokens;     // [requests][output], on the last stage; else empty
  TrafficCount traffic;
  std::int64_t weights = 0, cache = 0, activations = 0;  // bytes; the latter two at their highest
  double pace = 0;  // of its operators, against those of the passes that were timed; 0: unknown
};

// What a pass of the batch is made of on one rank, each measured alone.
struct PassPace {
  costmodel::Seconds operators;    // of one part of the batch, mean, on the thread's clock
  costmodel::Seconds collectives;  // of one part
  costmodel::Seconds transfers;    // once around all stages
};

struct ServedRecord {
  std::vector<ServedMeasurement> batches;
  PassPace decode, prefill;
};

// All ranks' records on rank 0, by rank; empty elsewhere. Collective.
std::vector<ServedRecord> gather_records(Transport& transport, const ServedRecord& own);

}  // namespace runtime
