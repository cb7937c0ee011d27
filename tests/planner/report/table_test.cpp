// One table, three forms.
#include "planner/report/table.hpp"

#include <doctest/doctest.h>

namespace table_test {

using namespace planner;

namespace {

const Table table{{{"name", false}, {"größe"}, {"", false}},
                  {{"a", "1", "x"}, {"long name", "−12", ""}}};

}  // namespace

TEST_CASE("text: columns aligned, no spaces at the ends of lines") {
  CHECK(to_text(table) ==
        "  name       größe\n"
        "  a              1  x\n"
        "  long name    −12\n");
  CHECK(to_text(table, 0).starts_with("name  "));
  CHECK(to_text({{{"a"}, {"b"}}, {}}, 0) == "a  b\n");
}

TEST_CASE("short lines: titles and prose are broken, then the most optional columns left out") {
  const Table wide{
      {{"plan", false}, {"seconds"}, {"a long title"}, {"size", true, 2}, {"why", false, 0}},
      {{"a", "1", "2", "3", "a longer sentence that says why this is so"}}};
  CHECK(to_text(wide, 0) ==
        "plan  seconds  a long title  size  why\n"
        "a           1             2     3  a longer sentence that says why this is so\n");
  CHECK(to_text(wide, 0, 60) ==
        "plan  seconds  a long title  size  why\n"
        "a           1             2     3  a longer sentence that\n"
        "                                   says why this is so\n");
  CHECK(to_text(wide, 0, 50) ==
        "plan  seconds     a long  why\n"
        "                   title\n"
        "a           1          2  a longer sentence that\n"
        "                          says why this is so\n"
        "(not shown in 50 columns: size; COLUMNS=52 shows\n"
        "  all)\n");
  CHECK(to_text(wide, 0, 40) ==
        "plan  seconds  why\n"
        "a           1  a longer sentence that\n"
        "               says why this is so\n"
        "(not shown in 40 columns: a long title,\n"
        "  size; COLUMNS=52 shows all)\n");
}

TEST_CASE("Markdown: alignment in the second line") {
  CHECK(to_markdown(table) ==
        "| name | größe |  |\n"
        "| --- | ---: | --- |\n"
        "| a | 1 | x |\n"
        "| long name | −12 |  |\n");
}

TEST_CASE("CSV quotes what RFC 4180 says must be quoted") {
  const Table odd{{{"a"}, {"b, c"}}, {{"plain", "two, or"}, {"say \"hi\"", "a;b"}, {"", " "}}};
  CHECK(to_csv(odd) == "a,\"b, c\"\nplain,\"two, or\"\n\"say \"\"hi\"\"\",a;b\n, \n");
}

TEST_CASE("a bar in a cell does not end it in Markdown") {
  CHECK(to_markdown({{{"a"}}, {{"x|y"}}}).find("x\\|y") != std::string::npos);
}

TEST_CASE("a row stays a row, and its columns stay aligned, whatever a cell holds") {
  const Table odd{{{"name", false}, {"n"}}, {{"\x1b[31mred\nline", "1"}, {"=1+2", "-3"}}};
  CHECK(to_text(odd, 0) ==
        "name                n\n"
        "\\x1b[31mred\\nline   1\n"
        "=1+2               -3\n");
  CHECK(to_csv(odd) == "name,n\n\\x1b[31mred\\nline,1\n'=1+2,-3\n");
  CHECK(to_markdown({{{"a", false}}, {{"<b>\n|"}}}) == "| a |\n| --- |\n| &lt;b&gt;\\n\\| |\n");
}

}  // namespace table_test
