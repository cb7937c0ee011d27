// Collectives as they were measured within one tier, over the size of the message.
#pragma once

#include <optional>
#include <vector>

#include "costmodel/base/collective_kind.hpp"
#include "costmodel/base/units.hpp"
#include "costmodel/config/value.hpp"
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

// Between the measured sizes as rate_at; below the smallest as long as the smallest. Nothing where
// that kind and number of ranks were not measured.
std::optional<Seconds> measured_collective(const std::vector<CollectiveTable>& tables,
                                           CollectiveKind kind, Bytes message, int ranks);

// Reads the list under a tier's `measured`. Throws ConfigError: an unknown kind or key, sizes that
// do not grow, as many rates as sizes are not there, a table twice.
std::vector<CollectiveTable> read_collective_tables(const Value& list);
Value to_value(const std::vector<CollectiveTable>& tables);

}  // namespace costmodel
