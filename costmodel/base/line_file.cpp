#include "costmodel/base/line_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "costmodel/base/error.hpp"
#include "costmodel/base/path.hpp"

namespace costmodel {

namespace {

constexpr off_t largest_file = off_t{128} << 20;
constexpr std::size_t longest_line = std::size_t{256} << 10;

[[noreturn]] void cannot_append(const std::string& path, int fault) {
  throw ConfigError({path, 0, 0}, std::string("cannot be written: ") + std::strerror(fault),
                    "free some space, or choose another --out");
}

}  // namespace

LineFile::LineFile(const std::string& path) : path_(path) {
  if (!is_own_file(path_)) remove_file(path_);
  file_ = FileDescriptor(
      open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666));
  struct stat file;
  if (!file_ || fstat(file_.get(), &file) != 0) cannot_append(path_, errno);
  if (!S_ISREG(file.st_mode)) cannot_append(path_, EINVAL);
  if (flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
    throw ConfigError({path_, 0, 0}, "another batch is writing into this folder",
                      "wait for its end, or choose another --out");
  }
  if (file.st_size > largest_file && ftruncate(file_.get(), 0) != 0) cannot_append(path_, errno);
  char last = '\n';
  if (file.st_size > 0 && pread(file_.get(), &last, 1, file.st_size - 1) == 1 && last != '\n' &&
      write(file_.get(), "\n", 1) != 1)
    cannot_append(path_, errno);
}

void LineFile::read(const std::function<void(const std::string&)>& take) const {
  std::array<char, 1 << 16> piece{};
  std::string line;
  bool complete = true;  // no part of the line has been left out
  ssize_t count = 0;
  for (off_t at = 0; (count = pread(file_.get(), piece.data(), piece.size(), at)) > 0;
       at += count) {
    for (const char c : std::string_view(piece.data(), static_cast<std::size_t>(count))) {
      if (c != '\n') {
        complete = complete && line.size() < longest_line;
        if (complete) line += c;
        continue;
      }
      if (complete) take(line);
      line.clear();
      complete = true;
    }
  }
}

void LineFile::add(const std::string& line) {
  const std::string text = line + "\n";
  const std::scoped_lock lock(mutex_);
  const ssize_t count = write(file_.get(), text.data(), text.size());
  if (count != static_cast<ssize_t>(text.size())) cannot_append(path_, count < 0 ? errno : ENOSPC);
  if (fsync(file_.get()) != 0 && errno != EINVAL && errno != EROFS) cannot_append(path_, errno);
}

}  // namespace costmodel
