// A run's result as text, of training or of serving: what ran, a table of prediction and
// measurement, losses, notes.
#pragma once

#include <string>
#include <vector>

#include "runtime/run/comparison.hpp"
#include "runtime/run/run_command.hpp"
#include "runtime/run/serve_command.hpp"

namespace runtime {

// The table of rows; `at_pace` adds its columns.
std::string comparison_text(const std::vector<Compared>& rows, bool at_pace);

std::string run_report(const RunResult& result, const costmodel::Scenario& scenario);

std::string serve_report(const ServeResult& result);

// FNV-1a over the token ids: equal exactly when all answers are.
std::uint64_t checksum(const std::vector<std::int64_t>& tokens);

}  // namespace runtime
