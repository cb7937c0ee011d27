// The README's transcripts are what the program prints.
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>

#include "tests/sanitized.hpp"

namespace readme_test {

namespace {

const std::string readme = SHARDPLAN_SOURCE_DIR "/README.md";
const std::string prompt = "$ scripts/shardplan ";

std::string printed_by(const std::string& arguments) {
  const std::string command =
      "cd '" SHARDPLAN_SOURCE_DIR "' && '" SHARDPLAN_EXECUTABLE "' " + arguments + " 2>/dev/null";
  std::FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string text;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) text += static_cast<char>(c);
  pclose(pipe);
  return text;
}

// The time a search takes is the machine's.
std::string masked(const std::string& text) {
  return std::regex_replace(text, std::regex(R"(valid plans in [0-9.e+-]+ (us|ms|s):)"),
                            "valid plans in TIME:");
}

std::string contents() {
  std::ifstream in(readme);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace

TEST_CASE("each transcript of the README is what the program prints") {
  std::string text = contents();
  int transcripts = 0;
  const bool update = std::getenv("SHARDPLAN_UPDATE_GOLDEN") != nullptr;
  for (std::size_t at = text.find("```console\n" + prompt); at != std::string::npos;
       at = text.find("```console\n" + prompt, at + 1)) {
    const std::size_t from = at + std::string("```console\n").size();
    const std::size_t line_end = text.find('\n', from);
    const std::size_t close = text.find("```\n", line_end);
    REQUIRE(close != std::string::npos);
    const std::string arguments =
        text.substr(from + prompt.size(), line_end - from - prompt.size());
    const std::string shown = text.substr(line_end + 1, close - line_end - 1);
    const std::string real = printed_by(arguments);
    CAPTURE(arguments);
    CHECK(real.size() > 200);
    if (update && masked(shown) != masked(real)) {
      text.replace(line_end + 1, shown.size(), real);
    } else {
      CHECK(masked(shown) == masked(real));
    }
    ++transcripts;
  }
  CHECK(transcripts == 3);
  if (update) std::ofstream(readme) << text;
}

namespace {

std::string page_of(const std::string& name) {
  std::ifstream in(SHARDPLAN_SOURCE_DIR "/docs/" + name);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// A page of docs/ is what `command` prints.
void check_page(const std::string& page, const std::string& command) {
  const std::string file = SHARDPLAN_SOURCE_DIR "/docs/" + page;
  const std::string real = printed_by(command);
  CAPTURE(page);
  CHECK(real.size() > 2000);
  if (std::getenv("SHARDPLAN_UPDATE_GOLDEN") != nullptr) std::ofstream(file) << real;
  CHECK(page_of(page) == real);
}

}  // namespace

// Serving's sources are left out one at a time, which takes too long under sanitizers.
TEST_CASE("docs/accuracy.md is what validate writes") {
  const std::string notes = " --format md --notes docs/known-errors.md";
  if (sanitized) {
    CHECK(page_of("accuracy.md").starts_with(printed_by("validate configs/evidence" + notes)));
  } else {
    check_page("accuracy.md", "validate configs/evidence configs/evidence/serving" + notes);
  }
}

}  // namespace readme_test
