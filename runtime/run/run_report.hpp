// A run's result as text: what ran, a table of prediction and measurement, losses, notes.
#pragma once

#include <string>
#include <vector>

#include "runtime/run/comparison.hpp"
#include "runtime/run/run_command.hpp"

namespace runtime {

// The table of rows; `at_pace` adds its columns.
std::string comparison_text(const std::vector<Compared>& rows, bool at_pace);

std::string run_report(const RunResult& result, const costmodel::Scenario& scenario);

}  // namespace runtime
