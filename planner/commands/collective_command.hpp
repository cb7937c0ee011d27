// `shardplan collective`.
#pragma once

#include <string>
#include <vector>

#include "costmodel/base/units.hpp"
#include "planner/commands/session.hpp"

namespace planner {

// Throws ConfigError.
CommandResult collective_command(const Session& session);

// "1GiB": one size; "8:8GiB:2": from the first by the factor up to the second, as nccl-tests' -b,
// -e and -f. Throws ConfigError.
std::vector<costmodel::Bytes> message_sizes(const std::string& text);

}  // namespace planner
