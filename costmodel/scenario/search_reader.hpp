// Reads the `search` map of a scenario.
#pragma once

#include <vector>

#include "costmodel/config/key_text.hpp"
#include "costmodel/scenario/scenario.hpp"

namespace costmodel {

// Throws ConfigError.
SearchLimits read_search(const Value& map);

// The keys of `search`.
std::vector<KeyText> search_keys();

}  // namespace costmodel
