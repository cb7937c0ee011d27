// The result of a run of serving as JSON, in the form of a training run's.
#pragma once

#include <string>

#include "runtime/run/serve_command.hpp"

namespace runtime {

std::string serve_json(const ServeResult& result);

}  // namespace runtime
