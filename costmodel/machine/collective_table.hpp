// Collectives as they were measured within one tier, over the size of the message.
#pragma once

#include <optional>
#include <vector>

#include "costmodel/base/collective_kind.hpp"
#include "costmodel/base/units.hpp"
#include "costmodel/machine/rate_table.hpp"

namespace costmodel {

// One kind among so many ranks that nothing but this tier joins. The curve's one axis is the
// message's bytes (costmodel/cost/collective.hpp), its rate message / time: what nccl-tests calls
// algbw.
struct CollectiveTable {
  CollectiveKind kind = CollectiveKind::all_reduce;
  int ranks = 2;
  RateTable curve;
};

// The table of that kind and number of ranks; null where they were not measured.
const CollectiveTable* table_of(const std::vector<CollectiveTable>& tables, CollectiveKind kind,
                                int ranks);

// Between the measured sizes as rate_at; below the smallest as long as the smallest. Nothing where
// that kind and number of ranks were not measured.
std::optional<Seconds> measured_collective(const std::vector<CollectiveTable>& tables,
                                           CollectiveKind kind, Bytes message, int ranks);

}  // namespace costmodel
