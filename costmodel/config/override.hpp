// One value of a configuration overridden from the command line.
#pragma once

#include <string>

#include "costmodel/config/value.hpp"

namespace costmodel {

// Applies "key.path=value" (the value is YAML; `mark` is where the assignment itself was written,
// usually the command line). Throws ConfigError on a missing '=' or a path through something that
// is not a map.
void assign_path(Value& root, const std::string& assignment, const Mark& mark);

}  // namespace costmodel
