// The building blocks of profiles of measured devices.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "calibrate/measure/records.hpp"
#include "costmodel/config/value.hpp"

namespace calibrate {

using Entries = std::vector<std::pair<std::string, costmodel::Value>>;

costmodel::Value quoted(const std::string& text);
costmodel::Value figure(double value, const char* unit = "");  // six significant digits
// A map of the entries and their source.
costmodel::Value group(const Entries& entries, const std::string& source);

// The best measured rate of one pass of an operator; 0 when not measured.
double best_rate(const std::vector<Record>& records, const std::string& op, costmodel::Pass pass);
// The bandwidth in bytes/s of the largest copy or triad.
double bandwidth(const std::vector<Record>& records);
double call_time(const std::vector<Record>& records);
// Sets the groups that the formulas use where the tables have no answer: gemm, attention and
// memory_efficiency, from the fastest product, the largest stream and a call, as `by` measured
// them.
void set_formulas(costmodel::Value& map, const std::vector<Record>& records, double peak,
                  double bytes_per_s, const std::string& by);
// rate / peak, clamped to what a profile allows; 1/2 when one of them is unknown.
double share_of(double rate, double peak);

}  // namespace calibrate
