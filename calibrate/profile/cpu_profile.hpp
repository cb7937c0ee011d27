// The device and the cluster that a calibration of this machine writes.
#pragma once

#include <string>
#include <vector>

#include "calibrate/measure/machine.hpp"
#include "calibrate/measure/network_bench.hpp"
#include "calibrate/measure/records.hpp"
#include "costmodel/config/value.hpp"

namespace calibrate {

// One core. Constants of the formulas are what the records say of them where a table has no answer.
costmodel::Value device_profile(const std::vector<Record>& records, const Machine& machine,
                                const std::string& command);

// As many such cores as there are ranks, joined by what their messages went through. `device`: the
// device's file as the cluster's file names it.
costmodel::Value cluster_profile(const std::vector<Record>& records, const Machine& machine,
                                 const Ranks& ranks, const std::string& command,
                                 const std::string& device);

}  // namespace calibrate
