// Reads and writes YAML (and therefore JSON). Only its source file uses the YAML library.
#pragma once

#include <string>

#include "costmodel/config/value.hpp"

namespace costmodel {

// Reads a file. Throws ConfigError for: a missing file, a directory, no permission, a size above 64
// MiB, invalid YAML, a duplicate key in a map, nesting deeper than 64, more than 10^6 values.
Value load_yaml(const std::string& path);

// Parses text with Unix or Windows line ends. `file` is the file name in the marks.
Value parse_yaml(const std::string& text, const std::string& file);

// Writes block style, with flow style for sequences of scalars. Parsing the result gives the same
// tree, but for bytes that are not UTF-8: they become U+FFFD.
std::string to_yaml(const Value& value);

}  // namespace costmodel
