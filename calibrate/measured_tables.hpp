// Records of a calibration turned into rate tables.
#pragma once

#include <vector>

#include "calibrate/part_file.hpp"
#include "costmodel/collective_table.hpp"
#include "costmodel/rate_table.hpp"

namespace calibrate {

// One table an operator and pass, of the records that are operators'. Points measured
// more than once count with their median; of a curve over bytes, points closer together than an
// eighth are one. A grid that lacks points is cut
// to the rows that have all.
std::vector<costmodel::RateTable> tables_of(
    const std::vector<Record>& records,
    costmodel::Precision precision = costmodel::Precision::fp32);

// The same of those that are collectives': a table a kind and number of ranks.
std::vector<costmodel::CollectiveTable> collective_tables_of(const std::vector<Record>& records);

}  // namespace calibrate
