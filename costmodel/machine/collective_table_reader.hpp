// Reads measured collectives from a tier's YAML, and writes them back.
#pragma once

#include <vector>

#include "costmodel/config/value.hpp"
#include "costmodel/machine/collective_table.hpp"

namespace costmodel {

// Reads the list under a tier's `measured`. Throws ConfigError for an unknown kind or key, sizes
// that are not ascending, a number of rates other than the number of sizes, and a duplicate table.
std::vector<CollectiveTable> read_collective_tables(const Value& list);
Value to_value(const std::vector<CollectiveTable>& tables);

}  // namespace costmodel
