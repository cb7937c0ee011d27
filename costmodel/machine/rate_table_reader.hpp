// Reads measured rates from a device's YAML, and writes them back.
#pragma once

#include <string_view>
#include <vector>

#include "costmodel/config/map_reader.hpp"
#include "costmodel/config/value.hpp"
#include "costmodel/machine/rate_table.hpp"

namespace costmodel {

// Reads the list under `operators: {tables: ...}`. Throws ConfigError for an unknown operator or
// key, axes that are not ascending, too few or too many rates, and a duplicate table or shape.
std::vector<RateTable> read_rate_tables(const Value& list);
Value to_value(const std::vector<RateTable>& tables);
// The map under the key `shapes` of a table that has some.
Value shapes_value(const RateTable& table);

// A one-axis table inside a larger map: two lists of equal length under these keys.
RateTable read_curve(MapReader& reader, std::string_view axis, std::string_view rate);
void set_curve(Value& map, const RateTable& curve, std::string_view axis, std::string_view rate);

}  // namespace costmodel
