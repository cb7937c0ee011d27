// Reads and writes YAML (and therefore JSON). Only its source file uses the YAML library.
#pragma once

#include <string>

#include "costmodel/base/input_file.hpp"
#include "costmodel/config/value.hpp"

namespace costmodel {

// Reads a file. Throws ConfigError as read_file() and parse_yaml() do.
Value load_yaml(const std::string& path, const ReadLimits& limits = config_limits);

// Whether a key may be written twice in a map; all are then kept, in their order.
enum class RepeatedKeys { refused, kept };

// Parses text with Unix or Windows line ends. `file` is the file name in the marks. Throws
// ConfigError for: invalid YAML, a second document, a key that is not a plain word or is written
// twice in a map, nesting deeper than 64, a scalar of more than 64 KiB, more than 2^19 values
// (aliases followed), or more than 2^20 commas, colons and opening brackets.
Value parse_yaml(const std::string& text, const std::string& file,
                 RepeatedKeys repeated = RepeatedKeys::refused);

// Writes block style, with flow style for sequences of scalars. Parsing the result gives the same
// tree, but for bytes that are not UTF-8: they become U+FFFD.
std::string to_yaml(const Value& value);

}  // namespace costmodel
