// A run's result as JSON: prediction and measurement in the same layout, and the errors between
// them.
#pragma once

#include <string>

#include "runtime/run/run_command.hpp"

namespace runtime {

std::string run_json(const RunResult& result);

}  // namespace runtime
