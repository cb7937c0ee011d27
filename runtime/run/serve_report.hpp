// The result of a run of serving as text: what ran, a table of prediction and measurement, notes.
#pragma once

#include <string>

#include "runtime/run/serve_command.hpp"

namespace runtime {

std::string serve_report(const ServeResult& result);

// FNV-1a over the token ids: equal exactly when all answers are.
std::uint64_t checksum(const std::vector<std::int64_t>& tokens);

}  // namespace runtime
