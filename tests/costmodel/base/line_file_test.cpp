// A journal's file: what is there and is no file of its own makes way, and no other file is
// touched.
#include "costmodel/base/line_file.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

#include "costmodel/base/error.hpp"
#include "tests/run_program.hpp"

namespace line_file_test {

namespace fs = std::filesystem;
using costmodel::LineFile;
using program::Scratch;

namespace {

std::vector<std::string> lines_of(const LineFile& file) {
  std::vector<std::string> lines;
  file.read([&](const std::string& line) { lines.push_back(line); });
  return lines;
}

}  // namespace

TEST_CASE("lines that were added are there again, but for one without an end") {
  const Scratch scratch;
  const std::string path = scratch.path() / "lines";
  LineFile(path).add("one");
  CHECK(scratch.read("lines") == "one\n");
  scratch.write("lines", "one\n" + std::string(300'000, 'x') + "\ntwo\nthr");
  LineFile file(path);
  CHECK(lines_of(file) == std::vector<std::string>{"one", "two", "thr"});  // its end is added
  file.add("four");
  CHECK(lines_of(file).back() == "four");
  CHECK_THROWS_WITH_AS(LineFile{path}, doctest::Contains("another batch"), costmodel::ConfigError);
}

TEST_CASE("a pipe, a link and a second name make way") {
  const Scratch scratch;
  const std::string path = scratch.path() / "lines";
  scratch.write("victim", "precious\n");
  const auto begin_anew = [&] {
    LineFile file(path);
    CHECK(lines_of(file).empty());
    file.add("x");
    fs::remove(path);
    CHECK(scratch.read("victim") == "precious\n");
  };
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  begin_anew();
  fs::create_symlink("victim", path);
  begin_anew();
  fs::create_symlink("/dev/zero", path);
  begin_anew();
  fs::create_hard_link(scratch.path() / "victim", path);
  begin_anew();
  scratch.write("lines", "");
  fs::resize_file(path, std::uintmax_t{1} << 30);
  begin_anew();
  fs::create_directory(path);
  CHECK_THROWS_WITH_AS(LineFile{path}, doctest::Contains("directory"), costmodel::ConfigError);
}

}  // namespace line_file_test
