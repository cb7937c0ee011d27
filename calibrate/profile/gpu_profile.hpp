// The profile of a GPU: a device.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "calibrate/measure/records.hpp"
#include "costmodel/base/precision.hpp"
#include "costmodel/config/value.hpp"
#include "runtime/backend/cuda_library.hpp"

namespace calibrate {

// `precision`: that of all operators; products have a peak and tables in each precision in which
// they were measured. `state`: further entries on the machine (runtime/devices/gpu_sensors.hpp).
// Where the tables have no answer, the formulas' constants come from the records too.
costmodel::Value gpu_profile(const std::vector<Record>& records, costmodel::Precision precision,
                             const runtime::CudaReport& report, const std::string& date,
                             const std::string& command,
                             const std::vector<std::pair<std::string, std::string>>& state = {});

}  // namespace calibrate
