// What stands where an output is to go: permissions, links, devices, inputs; and what goes wrong.
#include "costmodel/base/output_file.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "costmodel/base/input_file.hpp"
#include "tests/costmodel/support/fixtures.hpp"
#include "tests/run_program.hpp"

namespace output_file_test {

namespace fs = std::filesystem;
using namespace costmodel;
using fixtures::config_error;
using fixtures::contains;
using program::Scratch;

namespace {

std::string in(const Scratch& scratch, const std::string& name) {
  return (scratch.path() / name).string();
}

std::string fault(const std::string& path, LinkedOutput linked = LinkedOutput::followed) {
  return config_error([&] { write_file(path, "new", linked); });
}

unsigned mode_of(const std::string& path) {
  struct stat file;
  REQUIRE(lstat(path.c_str(), &file) == 0);
  return file.st_mode & 07777;
}

std::vector<std::string> names_in(const Scratch& scratch) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(scratch.path()))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

TEST_CASE("a new file gets what the umask leaves, a replaced one keeps its permissions") {
  const Scratch scratch;
  const mode_t before = umask(027);
  write_file(in(scratch, "new"), "new");
  umask(before);
  CHECK(mode_of(in(scratch, "new")) == 0640);
  for (const mode_t mode : {0600, 0644, 0666, 0700}) {
    REQUIRE(chmod(in(scratch, "new").c_str(), mode) == 0);
    write_file(in(scratch, "new"), std::to_string(mode));
    CHECK(mode_of(in(scratch, "new")) == mode);
    CHECK(scratch.read("new") == std::to_string(mode));
  }
  CHECK(names_in(scratch) == std::vector<std::string>{"new"});
}

TEST_CASE("a replaced file keeps its owner where this user may give files away") {
  if (geteuid() != 0) return;
  const Scratch scratch;
  scratch.write("file", "old");
  REQUIRE(chown(in(scratch, "file").c_str(), 12345, 23456) == 0);
  write_file(in(scratch, "file"), "new");
  struct stat file;
  REQUIRE(stat(in(scratch, "file").c_str(), &file) == 0);
  CHECK(file.st_uid == 12345);
  CHECK(file.st_gid == 23456);
}

TEST_CASE("a file without write permission is not replaced") {
  if (geteuid() == 0) return;  // root writes everything
  const Scratch scratch;
  scratch.write("file", "old");
  REQUIRE(chmod(in(scratch, "file").c_str(), 0444) == 0);
  CHECK(contains(fault(in(scratch, "file")), "cannot be written: Permission denied; "));
  CHECK(scratch.read("file") == "old");
}

TEST_CASE("what stands beside the file under a name one could guess is left alone") {
  const Scratch scratch;
  scratch.write("victim", "old");
  for (const char* name : {"file.part", ".file.part", "file.tmp", "file~"})
    fs::create_symlink("victim", scratch.path() / name);
  write_file(in(scratch, "file"), "new");
  CHECK(scratch.read("file") == "new");
  CHECK(scratch.read("victim") == "old");
  CHECK(fs::is_symlink(scratch.path() / "file.part"));
}

TEST_CASE("links are followed to what they name, which need not exist, and stay") {
  const Scratch scratch;
  fs::create_directories(scratch.path() / "a/b");
  scratch.write("a/target", "old");
  fs::create_symlink("../target", scratch.path() / "a/b/link");
  fs::create_symlink("a/b/link", scratch.path() / "first");
  write_file(in(scratch, "first"), "new");
  CHECK(scratch.read("a/target") == "new");
  CHECK(fs::is_symlink(scratch.path() / "first"));
  CHECK(fs::is_symlink(scratch.path() / "a/b/link"));
  fs::create_symlink("a/later", scratch.path() / "dangling");
  write_file(in(scratch, "dangling"), "new");
  CHECK(scratch.read("a/later") == "new");
  CHECK(fs::is_symlink(scratch.path() / "dangling"));
  fs::create_symlink("nowhere/later", scratch.path() / "lost");
  CHECK(contains(fault(in(scratch, "lost")), "cannot be written: No such file or directory; "));
  fs::create_symlink("ring", scratch.path() / "ring");
  CHECK(contains(fault(in(scratch, "ring")), "Too many levels of symbolic links"));
}

TEST_CASE("links may be refused: neither they nor what they name is written") {
  const Scratch scratch;
  scratch.write("victim", "old");
  fs::create_symlink("victim", scratch.path() / "link");
  fs::create_symlink("later", scratch.path() / "dangling");
  for (const char* name : {"link", "dangling"})
    CHECK(fault(in(scratch, name), LinkedOutput::refused) ==
          in(scratch, name) + ": cannot be written: it is a symbolic link; remove it");
  CHECK(scratch.read("victim") == "old");
  CHECK_FALSE(fs::exists(scratch.path() / "later"));
  CHECK(fault(in(scratch, "plain"), LinkedOutput::refused) == "");
}

TEST_CASE("a file of several names is refused, because replacing would part them") {
  const Scratch scratch;
  scratch.write("file", "old");
  fs::create_hard_link(scratch.path() / "file", scratch.path() / "other");
  CHECK(contains(fault(in(scratch, "file")), "it has 2 names (hard links); remove this one"));
  CHECK(scratch.read("other") == "old");
  fs::remove(scratch.path() / "file");
  CHECK(fault(in(scratch, "file")) == "");
  CHECK(scratch.read("other") == "old");
}

TEST_CASE("an input is no output, by whatever name") {
  const Scratch scratch;
  scratch.write("input", "old");
  fs::create_symlink("input", scratch.path() / "link");
  fs::create_symlink("link", scratch.path() / "further");
  const std::string around = (scratch.path() / ".." / scratch.path().filename() / "input").string();
  read_file(in(scratch, "input"));
  for (const auto& name :
       {in(scratch, "input"), in(scratch, "link"), in(scratch, "further"), around}) {
    CHECK(fault(name) ==
          name + ": cannot be written: it is an input of this command; choose another file");
    CHECK_THROWS_AS(require_writable(name), ConfigError);
  }
  fs::create_hard_link(scratch.path() / "input", scratch.path() / "hard");
  CHECK(contains(fault(in(scratch, "hard")), "it is an input of this command"));
  CHECK(scratch.read("input") == "old");
  scratch.write("own", "old");
  read_file(in(scratch, "own"), {.bytes = 100, .own = true});
  CHECK(fault(in(scratch, "own")) == "");
}

TEST_CASE("devices and pipes are written, not replaced") {
  const Scratch scratch;
  CHECK(fault("/dev/null") == "");
  CHECK(fs::is_character_file("/dev/null"));
  CHECK(fault("/dev/full") ==
        "/dev/full: cannot be written: No space left on device; free some space, or choose "
        "another place");
  const std::string path = in(scratch, "pipe");
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  std::string got;
  const std::string text(200'000, 'x');  // more than a pipe holds
  {
    const std::jthread reader([&] { got = read_file(path); });
    write_file(path, text);
  }
  CHECK(got == text);
  CHECK(fs::is_fifo(path));
}

TEST_CASE("a name of an open file is that file, wherever its end is") {
  const Scratch scratch;
  scratch.write("log", "first\n");
  const int log = open(in(scratch, "log").c_str(), O_WRONLY | O_APPEND);
  REQUIRE(log >= 0);
  for (const char* folder : {"/proc/self/fd/", "/dev/fd/"}) {
    CHECK(is_stream(folder + std::to_string(log)));
    write_file(folder + std::to_string(log), "more\n");
  }
  fs::create_symlink("/proc/self/fd/" + std::to_string(log), scratch.path() / "link");
  write_file(in(scratch, "link"), "last\n");
  close(log);
  CHECK(scratch.read("log") == "first\nmore\nmore\nlast\n");
  CHECK_FALSE(is_stream(in(scratch, "log")));
  CHECK_FALSE(is_stream(in(scratch, "new")));
}

TEST_CASE("faults are told, and leave neither a part nor a changed file") {
  const Scratch scratch;
  CHECK(contains(fault(scratch.path().string()), "cannot be written: Is a directory; "));
  CHECK(contains(fault(in(scratch, "none/file")), "cannot be written: No such file or directory"));
  CHECK(contains(fault(""), "cannot be written: No such file or directory"));
  CHECK(contains(fault(in(scratch, std::string(300, 'x'))), "File name too long"));
  scratch.write("file", "old");
  CHECK(contains(fault(in(scratch, "file/below")), "Not a directory"));
  const std::string longest(255, 'x');  // no room for a longer name beside it
  CHECK(fault(in(scratch, longest)) == "");
  fs::remove(scratch.path() / longest);
  // A limit of 4096 bytes stands for a full disk: the write stops half-way.
  const pid_t child = fork();
  if (child == 0) {
    const rlimit small{4096, 4096};
    setrlimit(RLIMIT_FSIZE, &small);
    std::signal(SIGXFSZ, SIG_IGN);
    bool told = false;
    try {
      write_file(in(scratch, "file"), std::string(100'000, 'x'));
    } catch (const ConfigError& error) {
      told = contains(error.what(), "cannot be written: File too large; ");
    }
    _exit(told ? 0 : 1);
  }
  int state = 0;
  REQUIRE(waitpid(child, &state, 0) == child);
  CHECK(state == 0);
  CHECK(scratch.read("file") == "old");
  CHECK(names_in(scratch) == std::vector<std::string>{"file"});
}

TEST_CASE("many writers of one file: it is always one of their texts, whole") {
  const Scratch scratch;
  const std::string path = in(scratch, "file");
  const auto text_of = [](int writer) {
    return std::string(20'000, static_cast<char>('a' + writer));
  };
  write_file(path, text_of(0));
  std::vector<int> faults(4, 0);
  {
    std::vector<std::jthread> writers;
    for (int w = 0; w < 4; ++w) {
      writers.emplace_back([&, w] {
        for (int i = 0; i < 20; ++i)
          faults[static_cast<std::size_t>(w)] += fault(path) == "" ? 0 : 1;
        write_file(path, text_of(w));
      });
    }
    for (int i = 0; i < 100; ++i) {
      const std::string seen = scratch.read("file");
      const bool whole = seen == "new" || (seen.size() == 20'000 && seen.front() == seen.back());
      CHECK(whole);
    }
  }
  CHECK(faults == std::vector<int>(4, 0));
  CHECK(names_in(scratch) == std::vector<std::string>{"file"});
}

TEST_CASE("what cannot be written is known before, and nothing is created to find out") {
  const Scratch scratch;
  const auto before = [](const std::string& path) {
    return config_error([&] { require_writable(path); });
  };
  CHECK(before(in(scratch, "new")) == "");
  CHECK(before("/dev/null") == "");
  CHECK(contains(before(in(scratch, "none/new")), "No such file or directory"));
  CHECK(contains(before(scratch.path().string()), "Is a directory"));
  CHECK(names_in(scratch).empty());
}

TEST_CASE("two paths are one output, whatever they are called") {
  const Scratch scratch;
  scratch.write("file", "x");
  fs::create_directory(scratch.path() / "a");
  fs::create_symlink("file", scratch.path() / "link");
  fs::create_symlink("a/new", scratch.path() / "later");
  const auto same = [&](const std::string& one, const std::string& other) {
    CHECK(is_same_output(other, one) == is_same_output(one, other));
    return is_same_output(one, other);
  };
  CHECK(same(in(scratch, "file"), in(scratch, "a/../file")));
  CHECK(same(in(scratch, "file"), in(scratch, "link")));
  CHECK(same(in(scratch, "new"), in(scratch, "./new")));
  CHECK(same(in(scratch, "later"), in(scratch, "a/new")));
  CHECK_FALSE(same(in(scratch, "new"), in(scratch, "a/new")));
  CHECK_FALSE(same(in(scratch, "new"), in(scratch, "file")));
  CHECK_FALSE(same("/dev/null", "/dev/null"));
}

}  // namespace output_file_test
