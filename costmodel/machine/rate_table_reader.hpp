// Measured rates in YAML: read from a device's file, and written back.
#pragma once

#include <string_view>
#include <vector>

#include "costmodel/config/map_reader.hpp"
#include "costmodel/config/value.hpp"
#include "costmodel/machine/rate_table.hpp"

namespace costmodel {

// Reads the list under `operators: {tables: ...}`. Throws ConfigError: an unknown operator or key,
// axes that do not grow, too few or too many rates, a table twice.
std::vector<RateTable> read_rate_tables(const Value& list);
Value to_value(const std::vector<RateTable>& tables);

// A table of one axis that is part of a larger map: two lists of the same length under these keys.
RateTable read_curve(MapReader& reader, std::string_view axis, std::string_view rate);
void set_curve(Value& map, const RateTable& curve, std::string_view axis, std::string_view rate);

}  // namespace costmodel
