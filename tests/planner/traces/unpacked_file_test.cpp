#include "planner/traces/unpacked_file.hpp"

#include <doctest/doctest.h>

#include <string>

#include "tests/costmodel/support/fixtures.hpp"
#include "tests/run_program.hpp"

namespace unpacked_file_test {

using fixtures::contains;
using program::Scratch;

namespace {

std::string all_of(const std::string& path) {
  const auto next = planner::unpacked_file(path);
  std::string text;
  for (std::string_view piece = next(); !piece.empty(); piece = next()) text += piece;
  return text;
}

// "hello\n" as gzip packs it.
const std::string packed(
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcb\x48\xcd\xc9\xc9\xe7\x02\x00"
    "\x20\x30\x3a\x36\x06\x00\x00\x00",
    26);

std::string written(const Scratch& scratch, const std::string& name, const std::string& text) {
  scratch.write(name, text);
  return (scratch.path() / name).string();
}

std::string refused(const std::string& path) {
  return fixtures::config_error([&] { all_of(path); });
}

}  // namespace

TEST_CASE("a plain file comes as it is, however long") {
  const Scratch scratch;
  const std::string text(1 << 20, 'x');
  CHECK(all_of(written(scratch, "plain.json", text)) == text);
  CHECK(all_of(written(scratch, "empty.json", "")).empty());
  CHECK(contains(refused((scratch.path() / "absent").string()), "no such file"));
}

TEST_CASE("a packed file is unpacked, its members one after the other; a cut one is refused") {
  const Scratch scratch;
  const std::string file = written(scratch, "t.gz", packed + packed);
  try {
    CHECK(all_of(file) == "hello\nhello\n");
  } catch (const std::exception& fault) {
    CHECK(contains(fault.what(), "built without zlib"));
    return;
  }
  CHECK(contains(refused(written(scratch, "cut.gz", packed.substr(0, 15))), "ends in the middle"));
  CHECK(
      contains(refused(written(scratch, "bad.gz", packed.substr(0, 10) + std::string(20, '\xff'))),
               "not what gzip packs"));
}

}  // namespace unpacked_file_test
