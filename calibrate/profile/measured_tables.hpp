// Records of a calibration turned into rate tables.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "calibrate/measure/records.hpp"
#include "costmodel/machine/collective_table.hpp"
#include "costmodel/machine/rate_table.hpp"

namespace calibrate {

// The name of records of an operator with a grid that was timed inside a model: points of no grid.
std::string in_a_layer(std::string_view op);

// One table an operator and pass, of the records that are operators'. Points measured
// more than once count with their median; of a curve over bytes, points closer together than an
// eighth are one. A grid that lacks points is cut
// to the rows that have all; and as its operator is timed alone, with inputs that the run before
// left in the caches, its rates are brought to what they are in a layer, by the median ratio of the
// records that are.
std::vector<costmodel::RateTable> tables_of(
    const std::vector<Record>& records,
    costmodel::Precision precision = costmodel::Precision::fp32);

// The same of those that are collectives': a table a kind and number of ranks.
std::vector<costmodel::CollectiveTable> collective_tables_of(const std::vector<Record>& records);

}  // namespace calibrate
