// What cannot be looked at is not there, and throws nothing.
#include "costmodel/base/path.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "tests/costmodel/support/fixtures.hpp"
#include "tests/run_program.hpp"

namespace path_test {

namespace fs = std::filesystem;
using namespace costmodel;
using fixtures::config_error;
using program::Scratch;

TEST_CASE("the parts of a path") {
  const std::string path = "a/b/c.d.yaml";
  CHECK(file_name_of(path) == "c.d.yaml");
  CHECK(stem_of(path) == "c.d");
  CHECK(ending_of(path) == ".yaml");
  CHECK(folder_of(path) == "a/b");
  CHECK(folder_of("x") == "");
  CHECK(joined_path("a", "b") == "a/b");
  CHECK(joined_path("", "b") == "b");
  CHECK(joined_path("a", "/b") == "/b");
  CHECK(normal_path("/a/../b/./c") == "/b/c");
  CHECK(relative_path("/a/x.yaml", "/a/b") == "../x.yaml");
  CHECK(program_file().starts_with('/'));
}

TEST_CASE("names too long, rings of links and zero bytes are not there") {
  const Scratch scratch;
  const std::string ring = scratch.path() / "ring", gone = scratch.path() / "gone";
  fs::create_symlink("ring", ring);
  fs::create_symlink("nowhere", gone);
  for (const std::string& path : {ring, gone, gone + std::string(300, 'a'), gone + "\0x",
                                  std::string(100'000, 'a'), std::string()}) {
    CHECK_FALSE(path_exists(path));
    CHECK_FALSE(is_folder(path));
    CHECK_FALSE(is_regular_file(path));
    CHECK_FALSE(is_own_file(path));
    CHECK(entries_of(path).empty());
  }
  CHECK(is_link(ring));
  remove_file(ring);
  CHECK_FALSE(is_link(ring));
}

TEST_CASE("an own file is a regular one of one name") {
  const Scratch scratch;
  scratch.write("file", "x");
  const std::string file = scratch.path() / "file", link = scratch.path() / "link",
                    pipe = scratch.path() / "pipe", second = scratch.path() / "second";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  fs::create_symlink("file", link);
  CHECK(is_own_file(file));
  CHECK_FALSE(is_own_file(link));
  CHECK_FALSE(is_own_file(pipe));
  fs::create_hard_link(file, second);
  CHECK_FALSE(is_own_file(file));
}

TEST_CASE("a folder's entries are sorted, and show what is no file") {
  const Scratch scratch;
  scratch.write("b", "");
  scratch.write("a", "");
  fs::create_symlink("nowhere", scratch.path() / "c");
  const auto entries = entries_of(scratch.path());
  REQUIRE(entries.size() == 3);
  CHECK(entries[0].name == "a");
  CHECK(entries[0].regular);
  CHECK_FALSE(entries[2].regular);
  CHECK(files_like(scratch.path() / "[ab]").size() == 2);
}

TEST_CASE("a folder is made with those above it, or refused with its place") {
  const Scratch scratch;
  make_folder(scratch.path() / "a/b");
  CHECK(is_folder(scratch.path() / "a/b"));
  const std::string longest = std::string(300, 'a');
  CHECK(config_error([&] { make_folder(longest); }) ==
        longest +
            ": is not a folder and cannot be made one: File name too long; choose another place");
}

}  // namespace path_test
