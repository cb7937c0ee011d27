// Files that are written whole or not at all.
#pragma once

#include <string>

namespace costmodel {

// Replaces the file whole: written beside it, then renamed; a device or a pipe is written to.
// Throws ConfigError when that fails.
void write_file(const std::string& path, const std::string& text);

}  // namespace costmodel
