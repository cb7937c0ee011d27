// One table, three forms.
#include "planner/report/table.hpp"

#include <doctest/doctest.h>

namespace table_test {

using namespace planner;

namespace {

const Table table{{{"name", false}, {"größe"}, {"", false}},
                  {{"a", "1", "x"}, {"long name", "−12", ""}}};

}  // namespace

TEST_CASE("width counts characters, not bytes") {
  CHECK(display_width("") == 0);
  CHECK(display_width("abc") == 3);
  CHECK(display_width("größe") == 5);
  CHECK(display_width("█·−") == 3);
}

TEST_CASE("text: columns aligned, no spaces at the ends of lines") {
  CHECK(to_text(table) ==
        "  name       größe\n"
        "  a              1  x\n"
        "  long name    −12\n");
  CHECK(to_text(table, 0).starts_with("name  "));
  CHECK(to_text({{{"a"}, {"b"}}, {}}, 0) == "a  b\n");
}

TEST_CASE("Markdown: alignment in the second line") {
  CHECK(to_markdown(table) ==
        "| name | größe |  |\n"
        "| --- | ---: | --- |\n"
        "| a | 1 | x |\n"
        "| long name | −12 |  |\n");
}

TEST_CASE("CSV quotes what RFC 4180 says must be quoted") {
  const Table odd{{{"a"}, {"b, c"}}, {{"plain", "two\nlines"}, {"say \"hi\"", "a\rb"}, {"", " "}}};
  CHECK(to_csv(odd) == "a,\"b, c\"\nplain,\"two\nlines\"\n\"say \"\"hi\"\"\",\"a\rb\"\n, \n");
}

TEST_CASE("a bar in a cell does not end it in Markdown") {
  CHECK(to_markdown({{{"a"}}, {{"x|y"}}}).find("x\\|y") != std::string::npos);
}

}  // namespace table_test
