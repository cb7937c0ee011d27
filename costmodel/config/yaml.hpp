// YAML (and so JSON) in and out. The only file that knows the YAML library.
#pragma once

#include <string>

#include "costmodel/config/value.hpp"

namespace costmodel {

// Reads a file. Throws ConfigError: missing, a directory, no permission, larger than 64 MiB, not
// YAML, a key twice in one map, nesting deeper than 64, more than 10^6 values.
Value load_yaml(const std::string& path);

// Parses text, its lines ended as on Unix or as on Windows; `file` is the name used in marks.
Value parse_yaml(const std::string& text, const std::string& file);

// Writes block style with flow style for sequences of scalars; reads back to the same tree.
std::string to_yaml(const Value& value);

}  // namespace costmodel
