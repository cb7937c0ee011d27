// A run's result as JSON, of training or of serving: prediction and measurement in the same layout,
// and the errors between them.
#pragma once

#include <string>

#include "runtime/run/run_command.hpp"
#include "runtime/run/serve_command.hpp"

namespace runtime {

std::string run_json(const RunResult& result);

std::string serve_json(const ServeResult& result);

}  // namespace runtime
