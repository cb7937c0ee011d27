// Lines broken into so many columns.
#include "costmodel/base/text_width.hpp"

#include <doctest/doctest.h>

#include <algorithm>

namespace text_width_test {

using namespace costmodel;

TEST_CASE("width counts characters, not bytes, and no colours") {
  CHECK(display_width("") == 0);
  CHECK(display_width("größe") == 5);
  CHECK(display_width("█·−") == 3);
  CHECK(display_width("\033[1mPlan\033[0m x") == 6);
}

TEST_CASE("a number keeps its percent, a size its name") {
  CHECK(unbroken_words("  t 8 · ZeRO 1 and 41.2 % of a day") ==
        std::vector<std::string>{"t 8", "·", "ZeRO 1", "and", "41.2 %", "of", "a", "day"});
  CHECK(unbroken_words("").empty());
  CHECK(unbroken_words("0 1 2 4096").size() == 4);
  CHECK(unbroken_words("t  8").size() == 2);  // columns of a table
}

TEST_CASE("lines are broken between words and go on to the right of their indent") {
  CHECK(wrapped("one two three\n", 9) == "one two\n  three\n");
  CHECK(wrapped("  one two three", 11) == "  one two\n    three");
  CHECK(wrapped("Plan   one two three", 14, 7) == "Plan   one two\n       three");
  CHECK(wrapped("short\n\nlines\n", 9) == "short\n\nlines\n");
  CHECK(wrapped("one two three", unlimited_width) == "one two three");
  CHECK(wrapped("as  it was,  but", 11) == "as  it was,\n  but");
}

TEST_CASE("only a word longer than a line is broken, behind a mark if it has one") {
  CHECK(wrapped("in eleven-character", 12) == "in\neleven-\n  character");
  CHECK(wrapped("a abcdefghijkl", 12) == "a\nabcdefghijkl");  // fits into a line without indent
  CHECK(wrapped("abcdefghijklmno", 10) == "abcdefghij\n  klmno");
}

TEST_CASE("no line is wider than asked, and nothing is lost, whatever the text") {
  const std::string text =
      "  Failures: storage of 81.38 MB/s (cluster.storage.bytes_per_s_per_device), as größe █████ "
      "arXiv:2407.21783/and-a-very-long-word-without-any-blank-in-it-at-all, then "
      "\033[1mbold\033[0m";
  for (std::size_t width = 10; width < 180; ++width) {
    const std::string broken = wrapped(text, width);
    for (std::size_t at = 0; at < broken.size();) {
      const std::size_t end = std::min(broken.find('\n', at), broken.size());
      CHECK(display_width(broken.substr(at, end - at)) <= width);
      at = end + 1;
    }
    const auto letters = [](std::string s) {
      std::erase_if(s, [](char c) { return c == ' ' || c == '\n'; });
      return s;
    };
    CHECK(letters(broken) == letters(text));
  }
}

}  // namespace text_width_test
