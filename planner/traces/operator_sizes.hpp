// The sizes of an operator's inputs, as profilers write them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace planner {

using OperatorSizes = std::vector<std::vector<std::int64_t>>;

// "[[8192,2048],[2048]]": a list for each input, empty of what is no tensor; lists within lists one
// after the other. Of other text what can be read of it.
OperatorSizes sizes_of(std::string_view text);

}  // namespace planner
