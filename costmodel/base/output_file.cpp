#include "costmodel/base/output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <random>
#include <string_view>
#include <thread>

#include "costmodel/base/error.hpp"
#include "costmodel/base/input_file.hpp"
#include "costmodel/base/interrupt.hpp"

namespace costmodel {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void cannot_write(const std::string& path, const std::string& why,
                               const std::string& remedy = "choose another place") {
  throw ConfigError({path, 0, 0}, "cannot be written: " + why, remedy);
}

[[noreturn]] void cannot_write(const std::string& path, int fault) {
  const bool full = fault == ENOSPC || fault == EDQUOT;
  cannot_write(path, std::strerror(fault),
               full ? "free some space, or choose another place" : "choose another place");
}

// Where a path leads.
struct Target {
  fs::path file;                       // after links; its name is in `folder`
  std::optional<struct stat> present;  // what is there already
  int open = -1;                       // or a file that this process has open already: /dev/stdout
};

// N for "/proc/self/fd/N": a link that names an open file, whatever its text says.
int open_file_of(const fs::path& link) {
  std::error_code status;
  const fs::path folder = fs::canonical(link.parent_path(), status);
  const std::string name = link.filename().string();
  int number = -1;
  if (status || folder != "/proc/" + std::to_string(getpid()) + "/fd") return -1;
  const auto [end, fault] = std::from_chars(name.data(), name.data() + name.size(), number);
  return fault == std::errc() && end == name.data() + name.size() ? number : -1;
}

// Follows links to the last name, which need not exist.
void follow_links(const std::string& path, Target& target) {
  constexpr int most = 40;  // as Linux
  for (int links = 0;; ++links) {
    std::error_code status;
    if (!fs::is_symlink(target.file, status)) return;
    target.open = open_file_of(target.file);
    if (target.open >= 0) return;
    if (links == most) cannot_write(path, ELOOP);
    const fs::path next = fs::read_symlink(target.file, status);
    if (status) cannot_write(path, status.value());
    target.file = next.is_absolute() ? next : target.file.parent_path() / next;
  }
}

// stat() comes before follow_links(), because the system refuses links that others left in a shared
// folder.
Target target_of(const std::string& path, LinkedOutput linked) {
  const bool followed = linked == LinkedOutput::followed;
  Target target{.file = path};
  struct stat file;
  if (path.empty() || path.find('\0') != std::string::npos) cannot_write(path, ENOENT);
  if ((followed ? stat : lstat)(path.c_str(), &file) == 0) {
    target.present = file;
  } else if (errno != ENOENT) {
    cannot_write(path, errno);
  }
  if (followed) follow_links(path, target);
  if (!followed && target.present && S_ISLNK(file.st_mode))
    cannot_write(path, "it is a symbolic link", "remove it");
  return target;
}

bool is_replaced(const Target& target) {
  return target.open < 0 && (!target.present || S_ISREG(target.present->st_mode));
}

void require_replaceable(const std::string& path, const Target& target) {
  if (!target.present) return;
  const struct stat& file = *target.present;
  if (S_ISDIR(file.st_mode)) cannot_write(path, EISDIR);
  if (!S_ISREG(file.st_mode)) return;
  if (is_input(file)) cannot_write(path, "it is an input of this command", "choose another file");
  if (!is_replaced(target)) return;
  if (file.st_nlink > 1) {
    cannot_write(path, fmt::format("it has {} names (hard links)", file.st_nlink),
                 "remove this one, or choose another file");
  }
  if (faccessat(AT_FDCWD, target.file.c_str(), W_OK, AT_EACCESS) != 0) cannot_write(path, errno);
}

void write_all(const std::string& path, int file, std::string_view text) {
  const InterruptedWait signals;
  while (!text.empty()) {
    const ssize_t count = write(file, text.data(), text.size());
    if (count < 0 && errno == EAGAIN) {  // a reader that takes its time
      pollfd change{file, POLLOUT, 0};
      poll(&change, 1, InterruptedWait::wait_ms);
      signals.refuse(path, "writing");
    } else if (count < 0 && errno != EINTR) {
      cannot_write(path, errno);
    }
    if (count > 0) text.remove_prefix(static_cast<std::size_t>(count));
  }
}

// Some file systems cannot flush a file; what they do is no fault of the file.
void flush(const std::string& path, int file) {
  if (fsync(file) != 0 && errno != EINVAL && errno != ENOSYS && errno != EROFS)
    cannot_write(path, errno);
}

// Opening a pipe for writing waits for its reader, so it is tried without waiting.
FileDescriptor open_stream(const std::string& path) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds patience(10);
  const InterruptedWait signals;
  for (const auto until = Clock::now() + patience;;) {
    FileDescriptor out(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (out) return out;
    if (errno != ENXIO) cannot_write(path, errno);
    signals.refuse(path, "writing");
    if (Clock::now() > until) cannot_write(path, "nobody reads from the pipe", "start its reader");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

void write_directly(const std::string& path, const Target& target, const std::string& text) {
  FileDescriptor out =
      target.open >= 0 ? FileDescriptor(fcntl(target.open, F_DUPFD_CLOEXEC, 0)) : open_stream(path);
  if (!out) cannot_write(path, errno);
  write_all(path, out.get(), text);
  if (!out.close()) cannot_write(path, errno);
}

// A new file beside the target, removed again unless it takes the target's place.
class Replacement {
 public:
  Replacement(const std::string& path, const Target& target)
      : path_(path), target_(target), name_(random_name()) {
    const fs::path parent = target.file.parent_path();
    folder_ = FileDescriptor(
        open(parent.empty() ? "." : parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!folder_) cannot_write(path, errno);
    constexpr int mode = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    // A private file's replacement must not be readable for a moment.
    file_ = FileDescriptor(
        openat(folder_.get(), name_.c_str(), mode, target.present ? S_IRUSR | S_IWUSR : 0666));
    if (!file_) cannot_write(path, errno);
    created_ = true;
  }
  ~Replacement() {
    if (created_) unlinkat(folder_.get(), name_.c_str(), 0);
  }
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;

  void fill(const std::string& text) {
    write_all(path_, file_.get(), text);
    if (target_.present) {
      take_over(*target_.present);
    } else if (text.starts_with("#!")) {
      make_executable();
    }
    flush(path_, file_.get());
    if (!file_.close()) cannot_write(path_, errno);
  }

  void take_place() {
    const std::string name = target_.file.filename();
    if (renameat(folder_.get(), name_.c_str(), folder_.get(), name.c_str()) != 0)
      cannot_write(path_, errno);
    created_ = false;
    const FileDescriptor readable(openat(folder_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (readable) flush(path_, readable.get());
  }

 private:
  static std::string random_name() {
    std::random_device source;
    return fmt::format(".shardplan-{:08x}{:08x}", source(), source());
  }

  // For whoever may read it.
  void make_executable() {
    struct stat own;
    if (fstat(file_.get(), &own) != 0) return;
    const mode_t readers = own.st_mode & 0444;
    if (fchmod(file_.get(), (own.st_mode & 0777) | readers >> 2) != 0) cannot_write(path_, errno);
  }

  // The owner, where this user may give files away, and the permissions.
  void take_over(const struct stat& old) {
    struct stat own;
    const bool same =
        fstat(file_.get(), &own) == 0 && own.st_uid == old.st_uid && own.st_gid == old.st_gid;
    const bool given = same || fchown(file_.get(), old.st_uid, old.st_gid) == 0;
    const mode_t mode = old.st_mode & (given ? 0777 : 0707);
    if (fchmod(file_.get(), mode) != 0) cannot_write(path_, errno);
  }

  const std::string& path_;
  const Target& target_;
  std::string name_;
  FileDescriptor folder_, file_;
  bool created_ = false;
};

}  // namespace

void write_file(const std::string& path, const std::string& text, LinkedOutput linked) {
  const Target target = target_of(path, linked);
  require_replaceable(path, target);
  if (!is_replaced(target)) return write_directly(path, target, text);
  Replacement replacement(path, target);
  replacement.fill(text);
  replacement.take_place();
}

bool is_stream(const std::string& path) {
  return !is_replaced(target_of(path, LinkedOutput::followed));
}

void require_writable(const std::string& path) {
  const Target target = target_of(path, LinkedOutput::followed);
  require_replaceable(path, target);
  if (!is_replaced(target)) return;
  const fs::path parent = target.file.parent_path();
  const fs::path folder = parent.empty() ? "." : parent;
  if (faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) != 0) cannot_write(path, errno);
}

bool is_same_output(const std::string& one, const std::string& other) {
  const Target a = target_of(one, LinkedOutput::followed),
               b = target_of(other, LinkedOutput::followed);
  if (a.present.has_value() != b.present.has_value()) return false;
  if (a.present) {
    return a.present->st_dev == b.present->st_dev && a.present->st_ino == b.present->st_ino &&
           !S_ISCHR(a.present->st_mode);
  }
  struct stat first, second;
  const auto folder_of = [](const Target& target) {
    return target.file.has_parent_path() ? target.file.parent_path().string() : ".";
  };
  return a.file.filename() == b.file.filename() && stat(folder_of(a).c_str(), &first) == 0 &&
         stat(folder_of(b).c_str(), &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

FileDescriptor open_null_device() {
  FileDescriptor nothing(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!nothing) cannot_write("/dev/null", errno);
  return nothing;
}

void write_standard_output(const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (written && std::fflush(stdout) == 0) return;
  throw ConfigError({}, std::string("standard output cannot be written: ") + std::strerror(errno),
                    "is the disk full?");
}

}  // namespace costmodel
