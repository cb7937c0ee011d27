// The result of `plan --strategy` in sentences.
#pragma once

#include <string>
#include <vector>

#include "planner/search/strategy.hpp"

namespace planner {

// One sentence per line: the best plan with even stages and with any layout, where and why they
// differ, what was searched and what is proved. Empty when only the grid was searched.
std::vector<std::string> strategy_sentences(const Strategies& strategies);

}  // namespace planner
