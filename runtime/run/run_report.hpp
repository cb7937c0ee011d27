// A run as text: what was run, a table of prediction against measurement, losses, notes.
#pragma once

#include <string>

#include "runtime/run/run_command.hpp"

namespace runtime {

std::string run_report(const RunResult& result, const costmodel::Scenario& scenario);

}  // namespace runtime
