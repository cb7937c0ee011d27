// Reads a user's file: bounded in size, kind and time.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/base/file_descriptor.hpp"
#include "costmodel/base/units.hpp"

struct stat;

namespace costmodel {

struct ReadLimits {
  std::size_t bytes;            // of a larger file nothing is used
  Seconds writer = Seconds(3);  // within this time somebody opens a pipe for writing,
  Seconds whole = Seconds(30);  // and within this time everything has been written and it is closed
  // A file that this program wrote, and may replace after reading it. Any other file is an input,
  // which no output replaces.
  bool own = false;
};

// A configuration is a few KiB, a list of measurements a few hundred.
inline constexpr ReadLimits config_limits{.bytes = std::size_t{4} << 20};
inline constexpr ReadLimits measurement_limits{.bytes = std::size_t{16} << 20};

// The contents of a regular file or a pipe. Throws ConfigError for: a missing file, a directory, a
// device or socket, no permission, more bytes than the limit, a pipe that has no writer or does not
// end in time, or a signal (interrupt.hpp) while it waits for one.
std::string read_file(const std::string& path, const ReadLimits& limits = config_limits);

// A large regular file, piece by piece. It becomes an input. The constructor and next() throw
// ConfigError as read_file() does; of a pipe too, whose writer could keep it open for ever.
class InputPieces {
 public:
  explicit InputPieces(const std::string& path);
  // Valid until the next call; empty at the end.
  std::string_view next();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  FileDescriptor file_;
  std::vector<char> piece_;
};

// Whether read_file() has read this regular file in this process as an input, under any name.
// Thread-safe.
bool is_input(const struct stat& file);

// The fingerprint of a regular file's contents, read piece by piece; "" of anything else, and of
// more bytes than `most`. It does not become an input.
std::string file_fingerprint(const std::string& path, std::size_t most = std::size_t{1} << 30);

// What the system has in a file of /proc or /sys: "" where it cannot be read. For constant paths.
std::string system_text(const std::string& path);

// The regular files that read_file() has read in this process, by absolute path, sorted.
std::vector<std::string> files_read();

}  // namespace costmodel
