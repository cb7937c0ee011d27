// A file of lines that grows while a program runs: a journal. One process holds it at a time.
#pragma once

#include <functional>
#include <mutex>
#include <string>

#include "costmodel/base/file_descriptor.hpp"

namespace costmodel {

class LineFile {
 public:
  // Opens the file, or makes it. What stands there and is no regular file of one name (a link, a
  // pipe) is removed, and a file above 128 MiB begins anew: both may be another's, and count for
  // nothing. Throws ConfigError when it cannot be written, and when another process holds it.
  explicit LineFile(const std::string& path);

  // Calls `take` with each line that the file has now. A line above 256 KiB is left out, and so is
  // a last one without an end: a kill cut it short.
  void read(const std::function<void(const std::string&)>& take) const;

  // Adds a line, flushed to the disk. Thread-safe. Throws ConfigError on failure.
  void add(const std::string& line);

 private:
  std::string path_;
  FileDescriptor file_;
  std::mutex mutex_;
};

}  // namespace costmodel
