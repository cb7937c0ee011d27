// Measured collectives in YAML: read from a tier, and written back.
#pragma once

#include <vector>

#include "costmodel/config/value.hpp"
#include "costmodel/machine/collective_table.hpp"

namespace costmodel {

// Reads the list under a tier's `measured`. Throws ConfigError: an unknown kind or key, sizes that
// do not grow, as many rates as sizes are not there, a table twice.
std::vector<CollectiveTable> read_collective_tables(const Value& list);
Value to_value(const std::vector<CollectiveTable>& tables);

}  // namespace costmodel
