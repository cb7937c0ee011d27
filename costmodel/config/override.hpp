// Overrides one value of a configuration from the command line (`--set`).
#pragma once

#include <string>

#include "costmodel/config/value.hpp"

namespace costmodel {

// Applies "key.path=value". The value is YAML; `mark` is the place of the assignment, usually the
// command line. A place in a list is a key too, from 0. Throws ConfigError when '=' is missing or
// when the path crosses a value that is neither a map nor a list with that place.
void assign_path(Value& root, const std::string& assignment, const Mark& mark);

}  // namespace costmodel
