// Atomic file output: a file is written completely or not at all.
#pragma once

#include <string>

namespace costmodel {

// Replaces the file atomically: writes a temporary file in the same directory, then renames it. A
// device or a pipe is written directly. Throws ConfigError on failure.
void write_file(const std::string& path, const std::string& text);

}  // namespace costmodel
