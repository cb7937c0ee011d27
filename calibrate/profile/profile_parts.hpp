// What profiles of measured devices are put together from.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "calibrate/measure/records.hpp"
#include "costmodel/config/value.hpp"

namespace calibrate {

using Entries = std::vector<std::pair<std::string, costmodel::Value>>;

costmodel::Value quoted(const std::string& text);
costmodel::Value figure(double value, const char* unit = "");  // six digits
// The entries, and where they are from.
costmodel::Value group(const Entries& entries, const std::string& source);

// The fastest that one pass of an operator was measured at; 0 where it was not.
double best_rate(const std::vector<Record>& records, const std::string& op, costmodel::Pass pass);
// Of the copy or triad whose tensors are largest.
double bandwidth(const std::vector<Record>& records);
double call_time(const std::vector<Record>& records);
// The groups of a device that stand behind its tables: gemm, attention and memory_efficiency, of
// the fastest product, the largest stream and a call, as `by` measured them.
void set_formulas(costmodel::Value& map, const std::vector<Record>& records, double peak,
                  double bytes_per_s, const std::string& by);
// Of a peak, within what a profile may say; a half where one of them is not known.
double share_of(double rate, double peak);

}  // namespace calibrate
