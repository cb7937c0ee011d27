// Reads TOML as the tree of value.hpp. Only toml.cpp uses the TOML library.
#pragma once

#include <string>

#include "costmodel/config/value.hpp"

namespace costmodel {

// Whether this build can read TOML: whether it was built with toml++.
bool reads_toml();

// The document as a map; dates are "?". Throws ConfigError at the place of what is no TOML, where
// tables or lists nest deeper than 32 levels, and in a build that reads none.
Value parse_toml(const std::string& text, const std::string& file);

}  // namespace costmodel
