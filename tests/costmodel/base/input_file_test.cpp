// What a user's file may be: regular files and pipes, bounded in size and time.
#include "costmodel/base/input_file.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>

#include "costmodel/base/interrupt.hpp"
#include "tests/costmodel/support/fixtures.hpp"
#include "tests/run_program.hpp"

namespace input_file_test {

using namespace costmodel;
using fixtures::config_error;
using fixtures::contains;
using program::Scratch;

namespace {

constexpr ReadLimits brief{.bytes = 1 << 20, .writer = Seconds(0.05), .whole = Seconds(0.1)};

std::string fault(const std::string& path, const ReadLimits& limits = brief) {
  return config_error([&] { read_file(path, limits); });
}

std::string in(const Scratch& scratch, const std::string& name) {
  return (scratch.path() / name).string();
}

std::string pipe_in(const Scratch& scratch) {
  const std::string path = in(scratch, "pipe");
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  return path;
}

// Writes to the pipe as soon as it is read; opening it waits for that.
std::jthread writer(const std::string& path, const std::string& text,
                    std::chrono::milliseconds then = {}) {
  return std::jthread([path, text, then] {
    const int out = open(path.c_str(), O_WRONLY);
    CHECK(write(out, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    std::this_thread::sleep_for(then);
    close(out);
  });
}

bool input(const std::string& path) {
  struct stat file;
  REQUIRE(stat(path.c_str(), &file) == 0);
  return is_input(file);
}

}  // namespace

TEST_CASE("a regular file is read to its end, also where its size is told as zero") {
  const Scratch scratch;
  const std::string text = "a: 1\n" + std::string(300'000, 'x') + std::string("\0end", 4);
  scratch.write("file", text);
  CHECK(read_file(in(scratch, "file"), brief) == text);
  CHECK(contains(read_file("/proc/self/status", brief), "Pid:"));
  scratch.write("empty", "");
  CHECK(read_file(in(scratch, "empty"), brief) == "");
}

TEST_CASE("what is no file is refused by its kind, with place and remedy") {
  const Scratch scratch;
  CHECK(fault(in(scratch, "none")) == in(scratch, "none") + ": no such file; check the path");
  CHECK(contains(fault(std::string("a\0b", 3)), ": no such file; check the path"));
  CHECK(contains(fault(scratch.path().string()), "is a directory; name a file in it"));
  for (const char* device : {"/dev/zero", "/dev/null", "/dev/random", "/dev/full"})
    CHECK(fault(device) ==
          std::string(device) + ": is a device or a socket; name a regular file or a pipe");
  std::filesystem::create_symlink("/dev/zero", scratch.path() / "zero.yaml");
  CHECK(contains(fault(in(scratch, "zero.yaml")), "is a device or a socket"));
  std::filesystem::create_symlink("ring", scratch.path() / "ring");
  CHECK(contains(fault(in(scratch, "ring")), "cannot be opened: Too many levels"));
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  std::strncpy(address.sun_path, in(scratch, "socket").c_str(), sizeof address.sun_path - 1);
  REQUIRE(bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  CHECK(contains(fault(in(scratch, "socket")), "is a device or a socket"));
  close(listener);
}

TEST_CASE("a file may be as large as its limit, and no larger; a sparse one is not read at all") {
  const Scratch scratch;
  scratch.write("file", std::string(brief.bytes, 'x'));
  CHECK(read_file(in(scratch, "file"), brief).size() == brief.bytes);
  scratch.write("file", std::string(brief.bytes + 1, 'x'));
  CHECK(contains(fault(in(scratch, "file")), "is larger than 1 MiB; "));
  std::filesystem::resize_file(scratch.path() / "file", std::uintmax_t{1} << 40);
  CHECK(contains(fault(in(scratch, "file")), "is larger than 1 MiB; "));
}

TEST_CASE("a pipe is read to its end, whenever its writer comes") {
  const Scratch scratch;
  const std::string path = pipe_in(scratch);
  const ReadLimits patient{.bytes = 1 << 20};
  const std::string text(200'000, 'x');  // more than a pipe holds
  {
    const auto out = writer(path, text);
    CHECK(read_file(path, patient) == text);
  }
  {
    const auto out = writer(path, "slow", std::chrono::milliseconds(50));
    CHECK(read_file(path, patient) == "slow");
  }
  const auto out = writer(path, "");
  CHECK(read_file(path, patient) == "");
}

TEST_CASE("a pipe whose writer ended before it was opened holds what was written") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  REQUIRE(write(ends[1], "text", 4) == 4);
  close(ends[1]);
  CHECK(read_file("/proc/self/fd/" + std::to_string(ends[0]), brief) == "text");
  close(ends[0]);
}

TEST_CASE("a pipe without a writer, without an end, or without a bound is given up") {
  const Scratch scratch;
  const std::string path = pipe_in(scratch);
  CHECK(fault(path) ==
        path + ": had no writer within 0.05 s; write all of it to the pipe, or name a file");
  {
    const int held = open(path.c_str(), O_RDWR);  // a writer that never writes
    CHECK(contains(fault(path), "did not end within 0.1 s"));
    REQUIRE(write(held, "begun", 5) == 5);
    CHECK(contains(fault(path), "did not end within 0.1 s"));
    close(held);
  }
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const std::string large(10, 'x');
  REQUIRE(write(ends[1], large.data(), large.size()) == 10);
  const std::string name = "/proc/self/fd/" + std::to_string(ends[0]);
  CHECK(contains(fault(name, {.bytes = 9, .whole = Seconds(0.1)}), "is larger than"));
  close(ends[0]);
  close(ends[1]);
}

TEST_CASE("what was read as an input is known by every name; what the program wrote is none") {
  const Scratch scratch;
  scratch.write("a", "text");
  scratch.write("own", "text");
  scratch.write("unread", "text");
  std::filesystem::create_symlink("a", scratch.path() / "link");
  std::filesystem::create_hard_link(scratch.path() / "a", scratch.path() / "hard");
  CHECK_FALSE(input(in(scratch, "a")));
  read_file(in(scratch, "link"), brief);
  read_file(in(scratch, "own"), {.bytes = 100, .own = true});
  CHECK(input(in(scratch, "a")));
  CHECK(input(in(scratch, "hard")));
  CHECK_FALSE(input(in(scratch, "own")));
  CHECK_FALSE(input(in(scratch, "unread")));
}

TEST_CASE("a fingerprint is of a regular file of at most so many bytes") {
  const Scratch scratch;
  scratch.write("file", "a");
  CHECK(file_fingerprint(in(scratch, "file")) == "af63dc4c8601ec8c");
  CHECK(file_fingerprint(in(scratch, "file"), 0) == "");
  for (const std::string& other : {pipe_in(scratch), std::string("/dev/zero"), std::string("/"),
                                   in(scratch, "none"), std::string(5000, 'x')})
    CHECK(file_fingerprint(other) == "");
  CHECK(system_text("/proc/self/stat").find("(costmodel_tests)") != std::string::npos);
  CHECK(system_text(in(scratch, "none")) == "");
}

TEST_CASE("a signal ends the wait for a pipe's writer") {
  const Scratch scratch;
  const std::string path = pipe_in(scratch);
  const OnInterrupt on_interrupt([](int) { return AfterSignal::go_on; });
  const std::jthread later([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    kill(getpid(), SIGTERM);
  });
  const std::string wrong = fault(path, {.bytes = 1 << 20});
  CHECK(contains(wrong, path + ": reading was interrupted by SIGTERM"));
}

}  // namespace input_file_test
