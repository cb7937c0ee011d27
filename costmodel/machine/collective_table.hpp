// Collectives measured within one tier, as a function of the message size.
#pragma once

#include <optional>
#include <vector>

#include "costmodel/base/collective_kind.hpp"
#include "costmodel/base/units.hpp"
#include "costmodel/machine/rate_table.hpp"

namespace costmodel {

// One kind of collective on `ranks` ranks that this tier alone connects. The curve maps message
// bytes (as cost/collective.hpp defines them) to message / time in B/s: the algbw of nccl-tests.
struct CollectiveTable {
  CollectiveKind kind = CollectiveKind::all_reduce;
  int ranks = 2;
  RateTable curve;
};

// The table of that kind and number of ranks; null when not measured.
const CollectiveTable* table_of(const std::vector<CollectiveTable>& tables, CollectiveKind kind,
                                int ranks);

// The measured time, interpolated by rate_at; below the smallest measured size, the time of the
// smallest. Empty when that kind and number of ranks were not measured.
std::optional<Seconds> measured_collective(const std::vector<CollectiveTable>& tables,
                                           CollectiveKind kind, Bytes message, int ranks);

}  // namespace costmodel
