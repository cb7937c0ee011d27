// Converts the records of a calibration to rate tables.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "calibrate/measure/records.hpp"
#include "costmodel/machine/collective_table.hpp"
#include "costmodel/machine/rate_table.hpp"

namespace calibrate {

// The record name of an operator with a grid table that was timed inside a model: not a grid point.
std::string in_a_layer(std::string_view op);

// The record name of an operator that was measured in a precision other than that of the
// calibration: "linear in fp8".
std::string in_precision(std::string_view op, costmodel::Precision precision);

// The records of operators in that other precision, under the operators' own names.
std::vector<Record> records_in(const std::vector<Record>& records, costmodel::Precision precision);

// The middle one; of an even number the geometric mean of the middle two.
double median_rate(std::vector<double> values);

// One table per operator and pass, from the records of operators. Points measured more than once
// count with their median; on a curve over bytes, points within a factor of 1.125 are merged. A
// grid with missing points is cut to its complete rows. Its operator was timed in isolation, with
// inputs left in the caches by the previous run, so its rates are scaled by the median ratio to
// those inside a layer.
std::vector<costmodel::RateTable> tables_of(
    const std::vector<Record>& records,
    costmodel::Precision precision = costmodel::Precision::fp32);

// The same for records of collectives: one table per kind and number of ranks.
std::vector<costmodel::CollectiveTable> collective_tables_of(const std::vector<Record>& records);

}  // namespace calibrate
