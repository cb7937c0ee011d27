// The profiles of this machine: a device and a cluster.
#pragma once

#include <string>
#include <vector>

#include "calibrate/measure/machine.hpp"
#include "calibrate/measure/network_bench.hpp"
#include "calibrate/measure/records.hpp"
#include "costmodel/config/value.hpp"

namespace calibrate {

// The device, one core. Where the tables have no answer, the formulas' constants come from the
// records too.
costmodel::Value device_profile(const std::vector<Record>& records, const Machine& machine,
                                const std::string& command);

// The cluster: one such core per rank, connected by what their messages went through. `device`: the
// device's file, as the cluster's file refers to it.
costmodel::Value cluster_profile(const std::vector<Record>& records, const Machine& machine,
                                 const Ranks& ranks, const std::string& command,
                                 const std::string& device);

}  // namespace calibrate
