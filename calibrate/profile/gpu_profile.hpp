// The device that a calibration of a GPU writes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "calibrate/measure/records.hpp"
#include "costmodel/base/precision.hpp"
#include "costmodel/config/value.hpp"
#include "runtime/backend/cuda_library.hpp"

namespace calibrate {

// `state` is what else is known of the machine (gpu_gauge.hpp). Constants of the formulas are what
// the records say of them where a table has no answer.
costmodel::Value gpu_profile(const std::vector<Record>& records, costmodel::Precision precision,
                             const runtime::CudaReport& report, const std::string& date,
                             const std::string& command,
                             const std::vector<std::pair<std::string, std::string>>& state = {});

}  // namespace calibrate
