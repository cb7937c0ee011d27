#include "costmodel/base/input_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "costmodel/base/error.hpp"
#include "costmodel/base/fingerprint.hpp"
#include "costmodel/base/interrupt.hpp"
#include "costmodel/base/path.hpp"

namespace costmodel {

namespace {

// The files read as inputs.
struct Inputs {
  std::mutex mutex;
  std::map<std::pair<dev_t, ino_t>, std::string> paths;
  std::set<std::string> all;  // those that this program wrote too
};

Inputs& inputs() {
  static Inputs all;
  return all;
}

void remember(const struct stat& file, const std::string& path, bool own) {
  const std::string absolute = absolute_path(path);
  const std::scoped_lock lock(inputs().mutex);
  inputs().all.insert(absolute);
  if (!own) inputs().paths[{file.st_dev, file.st_ino}] = absolute;
}

[[noreturn]] void refuse_file(const std::string& path, const std::string& wrong,
                              const std::string& remedy) {
  throw ConfigError({path, 0, 0}, wrong, remedy);
}

[[noreturn]] void refuse_size(const std::string& path, std::size_t most) {
  refuse_file(path, fmt::format("is larger than {} MiB", most >> 20),
              "split it, or leave out a part");
}

void require_readable_kind(const std::string& path, const struct stat& file) {
  if (S_ISDIR(file.st_mode)) refuse_file(path, "is a directory", "name a file in it");
  if (!S_ISREG(file.st_mode) && !S_ISFIFO(file.st_mode))
    refuse_file(path, "is a device or a socket", "name a regular file or a pipe");
}

// Checks the kind before opening, because opening a device can have effects, and after it, because
// the name may mean another file by then. Opening does not wait for a pipe's writer.
FileDescriptor open_file(const std::string& path, struct stat& file) {
  if (path.find('\0') != std::string::npos || (stat(path.c_str(), &file) != 0 && errno == ENOENT))
    refuse_file(path, "no such file", "check the path");
  FileDescriptor in;
  if (errno = 0; stat(path.c_str(), &file) == 0) {
    require_readable_kind(path, file);
    in = FileDescriptor(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  }
  if (!in || fstat(in.get(), &file) != 0) {
    refuse_file(path, std::string("cannot be opened: ") + std::strerror(errno),
                "check its permissions");
  }
  require_readable_kind(path, file);
  return in;
}

class Reading {
  using Clock = std::chrono::steady_clock;

 public:
  Reading(const std::string& path, int file, const ReadLimits& limits)
      : path_(path), file_(file), limits_(limits), begin_(Clock::now()) {}

  std::string all() {
    while (!ended_) step();
    return std::move(text_);
  }

 private:
  void step() {
    constexpr std::size_t chunk = std::size_t{64} << 10;
    const std::size_t before = text_.size();
    text_.resize(before + chunk);
    const ssize_t count = read(file_, text_.data() + before, chunk);
    const int fault = count < 0 ? errno : 0;
    text_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    if (text_.size() > limits_.bytes) refuse_size(path_, limits_.bytes);
    if (fault == EINTR) return;
    if (fault != 0 && fault != EAGAIN)
      refuse_file(path_, std::string("reading failed: ") + std::strerror(fault), "check the disk");
    if (count <= 0) wait(fault == EAGAIN);
  }

  // After a read of nothing: the end, or of a pipe that has no writer yet (read() calls that the
  // end too) or a slow one.
  void wait(bool written) {
    struct stat file;
    const bool pipe = fstat(file_, &file) == 0 && S_ISFIFO(file.st_mode);
    if (!pipe && written)  // /proc/kmsg gives what the kernel is yet to write
      refuse_file(path_, "has nothing to read yet", "name a regular file or a pipe");
    if (!written && (!pipe || !text_.empty())) {
      ended_ = true;
      return;
    }
    const Seconds limit = written ? limits_.whole : limits_.writer;
    const std::chrono::duration<double> taken = Clock::now() - begin_;
    const auto left = static_cast<int>(std::ceil(1000 * (limit.value - taken.count())));
    if (left <= 0) {
      const std::string wrong = written ? "did not end" : "had no writer";
      refuse_file(path_, fmt::format("{} within {:g} s", wrong, limit.value),
                  "write all of it to the pipe, or name a file");
    }
    pollfd change{file_, POLLIN, 0};
    poll(&change, 1, std::min(left, InterruptedWait::wait_ms));
    signals_.refuse(path_, "reading");
    ended_ = (change.revents & (POLLIN | POLLHUP)) == POLLHUP;
  }

  const std::string& path_;
  int file_;
  const ReadLimits& limits_;
  Clock::time_point begin_;
  InterruptedWait signals_;
  std::string text_;
  bool ended_ = false;
};

}  // namespace

std::string read_file(const std::string& path, const ReadLimits& limits) {
  struct stat file;
  const FileDescriptor in = open_file(path, file);
  const bool regular = S_ISREG(file.st_mode);
  if (regular && static_cast<std::uintmax_t>(file.st_size) > limits.bytes)
    refuse_size(path, limits.bytes);
  std::string text = Reading(path, in.get(), limits).all();
  if (regular) remember(file, path, limits.own);
  return text;
}

InputPieces::InputPieces(const std::string& path) : path_(path), piece_(std::size_t{1} << 18) {
  struct stat file;
  file_ = open_file(path, file);
  if (!S_ISREG(file.st_mode))
    refuse_file(path, "is a pipe", "write what it gives into a file, and name that");
  remember(file, path, false);
}

std::string_view InputPieces::next() {
  for (;;) {
    const ssize_t count = read(file_.get(), piece_.data(), piece_.size());
    if (count >= 0) return {piece_.data(), static_cast<std::size_t>(count)};
    if (errno != EINTR) {
      refuse_file(path_, std::string("reading failed: ") + std::strerror(errno), "check the disk");
    }
  }
}

std::string file_fingerprint(const std::string& path, std::size_t most) {
  struct stat file;
  if (!is_regular_file(path)) return {};
  const FileDescriptor in(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!in || fstat(in.get(), &file) != 0 || !S_ISREG(file.st_mode)) return {};
  if (static_cast<std::size_t>(file.st_size) > most) return {};
  Fingerprint print;
  std::array<char, 1 << 16> piece{};
  for (std::size_t size = 0;;) {
    const ssize_t count = read(in.get(), piece.data(), piece.size());
    if (count == 0) return print.text();
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 || (size += static_cast<std::size_t>(count)) > most) return {};
    print.add({piece.data(), static_cast<std::size_t>(count)});
  }
}

std::string system_text(const std::string& path) {
  std::string text;
  const FileDescriptor in(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  std::array<char, 4096> piece{};
  for (ssize_t count; in && text.size() < config_limits.bytes;) {
    if ((count = read(in.get(), piece.data(), piece.size())) == 0) break;
    if (count < 0 && errno != EINTR) break;
    if (count > 0) text.append(piece.data(), static_cast<std::size_t>(count));
  }
  return text;
}

std::vector<std::string> files_read() {
  const std::scoped_lock lock(inputs().mutex);
  return {inputs().all.begin(), inputs().all.end()};
}

bool is_input(const struct stat& file) {
  const std::scoped_lock lock(inputs().mutex);
  const auto found = inputs().paths.find({file.st_dev, file.st_ino});
  struct stat now;  // what was removed leaves its number to another file
  return found != inputs().paths.end() && stat(found->second.c_str(), &now) == 0 &&
         now.st_dev == file.st_dev && now.st_ino == file.st_ino;
}

}  // namespace costmodel
