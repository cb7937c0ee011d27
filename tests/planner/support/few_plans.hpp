// Of a scenario whose search a test needs, but not all that it tries.
#pragma once

#include <string>

#include "tests/sanitized.hpp"

namespace few_plans {

// The section `search` of a scenario: with sanitizers few plans are left, in release all.
inline const std::string if_sanitized =
    sanitized ? "search: {max_tp: 2, max_vpp: 1, max_micro_batch: 1}\n" : "";

// The same as words of a command.
inline const std::string options_if_sanitized =
    sanitized ? " --set search.max_tp=2 --set search.max_vpp=1 --set search.max_micro_batch=1" : "";

}  // namespace few_plans
