// A run's result as text: what ran, a table of prediction and measurement, losses, notes.
#pragma once

#include <string>

#include "runtime/run/run_command.hpp"

namespace runtime {

std::string run_report(const RunResult& result, const costmodel::Scenario& scenario);

}  // namespace runtime
