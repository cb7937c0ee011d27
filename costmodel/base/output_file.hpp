// Atomic file output: a file is written completely or not at all.
#pragma once

#include <string>

#include "costmodel/base/file_descriptor.hpp"

namespace costmodel {

enum class LinkedOutput { followed, refused };

// Replaces the file atomically: writes a temporary file of a random name in the same directory,
// flushes it to the disk, then renames it. A new file gets the permissions that the umask leaves,
// and may be executed where it begins with "#!"; a replaced one keeps its own. Symbolic links are
// followed, also to a file that does not exist yet, unless they are refused. A device or a pipe is
// written directly, as is /dev/stdout.
//
// Throws ConfigError on failure, and for: a directory; a file without write permission; a file of
// several names (hard links), which replacing would part; a file that this process has read as an
// input (is_input); a pipe that nobody reads from within 10 seconds.
void write_file(const std::string& path, const std::string& text,
                LinkedOutput linked = LinkedOutput::followed);

// Whether write_file() writes the file directly, so that what is written cannot be replaced.
bool is_stream(const std::string& path);

// Throws what write_file() would throw of the file as it is now; call it before a long computation.
// Creates nothing.
void require_writable(const std::string& path);

// Whether what is written to one path would be written over by what is written to the other: links
// are followed. Never of a device, which keeps nothing.
bool is_same_output(const std::string& one, const std::string& other);

// /dev/null, for a process that gets no input and whose output is thrown away.
FileDescriptor open_null_device();

// Writes to standard output and flushes it. Throws ConfigError on failure.
void write_standard_output(const std::string& text);

}  // namespace costmodel
