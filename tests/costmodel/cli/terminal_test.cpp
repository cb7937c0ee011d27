// Colours, lines written over, and their width, by the environment and by what a descriptor is.
#include "costmodel/cli/terminal.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <string>

namespace terminal_test {

using namespace costmodel;

namespace {

// Sets a variable while it lives; null: takes it away.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    set(value);
  }
  ~Variable() { set(before_ ? before_->c_str() : nullptr); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  void set(const char* value) const {
    if (value == nullptr) {
      unsetenv(name_);
    } else {
      setenv(name_, value, 1);
    }
  }
  const char* name_;
  std::optional<std::string> before_;
};

// A terminal of 72 columns.
class Terminal {
 public:
  Terminal() {
    master_ = posix_openpt(O_RDWR | O_NOCTTY);
    if (master_ < 0 || grantpt(master_) != 0 || unlockpt(master_) != 0) return;
    terminal_ = ::open(ptsname(master_), O_RDWR | O_NOCTTY);
    const winsize size{.ws_row = 24, .ws_col = 72, .ws_xpixel = 0, .ws_ypixel = 0};
    if (terminal_ >= 0) ioctl(terminal_, TIOCSWINSZ, &size);
  }
  ~Terminal() {
    for (const int descriptor : {terminal_, master_})
      if (descriptor >= 0) close(descriptor);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  bool open() const { return terminal_ >= 0; }
  int descriptor() const { return terminal_; }

 private:
  int master_ = -1, terminal_ = -1;
};

}  // namespace

TEST_CASE("NO_COLOR takes colours from a terminal, TERM=dumb also lines written over") {
  const Terminal terminal;
  if (!terminal.open()) return;  // a machine without pseudo-terminals
  const Variable xterm("TERM", "xterm"), plain("NO_COLOR", nullptr);
  const int fd = terminal.descriptor();
  CHECK(shows_colors(fd));
  CHECK(overwrites_lines(fd));
  {
    const Variable empty("NO_COLOR", "");  // counts as absent
    CHECK(shows_colors(fd));
    const Variable set("NO_COLOR", "0");  // any value counts
    CHECK_FALSE(shows_colors(fd));
    CHECK(overwrites_lines(fd));
  }
  const Variable dumb("TERM", "dumb");
  CHECK_FALSE(shows_colors(fd));
  CHECK_FALSE(overwrites_lines(fd));
}

TEST_CASE("what is no terminal has neither") {
  const Variable xterm("TERM", "xterm"), plain("NO_COLOR", nullptr);
  const int fd = open("/dev/null", O_WRONLY);
  CHECK_FALSE(shows_colors(fd));
  CHECK_FALSE(overwrites_lines(fd));
  close(fd);
}

TEST_CASE("the width is that of COLUMNS, else the terminal's, else unlimited") {
  const auto columns = [](const char* said, int fd) {
    const Variable variable("COLUMNS", said);
    return width_of_lines(fd);
  };
  CHECK(columns("100", -1) == 100);
  CHECK(columns("20", -1) == 40);
  for (const char* none : {static_cast<const char*>(nullptr), "", "0", "wide", "80x", "-80", " 80"})
    CHECK(columns(none, -1) == unlimited_width);
  const Terminal terminal;
  if (!terminal.open()) return;
  CHECK(columns(nullptr, terminal.descriptor()) == 72);
  CHECK(columns("100", terminal.descriptor()) == 100);
}

}  // namespace terminal_test
