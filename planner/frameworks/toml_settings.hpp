// The settings of a TOML, as fields in the order of their places.
#pragma once

#include <string>
#include <vector>

#include "planner/frameworks/overrides_text.hpp"

namespace planner {

// "[training] seq_len = 8192" is the field training.seq_len. A list of lists has a value for each
// of them: its items, with blanks between. Throws as costmodel::parse_toml().
std::vector<SetField> read_toml(const std::string& text, const std::string& file);

}  // namespace planner
