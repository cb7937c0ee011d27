// Lines that begin with a word, wherever they stand, and documents in scripts.
#include "planner/exchange/lines.hpp"

#include <doctest/doctest.h>

#include <string>

namespace lines_test {

TEST_CASE("a line begins with a word at the start of the text or of a line") {
  CHECK(planner::has_line("[training]\n", "[training]"));
  CHECK(planner::has_line("# x\n[training]\n", "[training]"));
  CHECK_FALSE(planner::has_line("# [training]\n", "[training]"));
  CHECK_FALSE(planner::has_line("", "x"));
}

TEST_CASE("a document of a script keeps its lines; any other text is itself") {
  const std::string script = "#!/bin/bash\ncat > x <<'TOML'\na = 1\nb = 2\nTOML\necho a = 1\n";
  CHECK(planner::holds_document(script, "TOML"));
  CHECK(planner::here_document(script, "TOML") == "\n\na = 1\nb = 2\n");
  CHECK(planner::here_document("x <<'TOML'\nTOML\ny\n", "TOML") == "\n");
  CHECK(planner::here_document("x <<'TOML'\na = 1\n", "TOML") == "\na = 1\n");
  CHECK_FALSE(planner::holds_document(script, "JSON"));
  CHECK(planner::here_document(script, "JSON") == script);
}

TEST_CASE("what cat prints of the lines after it") {
  const auto printed = planner::printed_by_cat("cat << END\na $N\n  \"b\"\n END\nc\n");
  REQUIRE(printed);
  CHECK(printed->text == "a $N\n  \"b\"\n");
  CHECK_FALSE(printed->plain);
  CHECK(planner::printed_by_cat("cat <<-'END'\na\nEND")->plain);
  CHECK_FALSE(planner::printed_by_cat("cat file"));
  CHECK_FALSE(planner::printed_by_cat("cat <<END"));
}

}  // namespace lines_test
