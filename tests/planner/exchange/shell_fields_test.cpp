// Words made of pieces: quotes join, blanks outside them part, and growth has its end.
#include "planner/exchange/shell_fields.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace shell_fields_test {

using planner::ShellBudget;
using planner::ShellFields;
using planner::ShellWords;

namespace {

std::vector<std::string> texts(ShellFields& fields) {
  std::vector<std::string> list;
  for (const auto& word : fields.take()) list.push_back(word.text);
  return list;
}

const ShellWords value{{"a b", {"x", 1, 1}, ""}, {"c", {"x", 1, 5}, ""}};

}  // namespace

TEST_CASE("a value is words outside quotes, one word in them, and its items as [@]") {
  using List = std::vector<std::string>;
  ShellBudget budget;
  ShellFields plain({"x", 1, 1}, budget), quoted({"x", 1, 1}, budget), items({"x", 1, 1}, budget);
  plain.add('-');
  plain.add_value(value, false, false);
  CHECK(texts(plain) == List{"-a", "b", "c"});
  quoted.add_value(value, true, false);
  quoted.add("!");
  CHECK(texts(quoted) == List{"a b c!"});
  items.add_value(value, true, true);
  CHECK(texts(items) == List{"a b", "c"});
}

TEST_CASE("nothing is no word, an opened one is an empty word, and what is not known is kept") {
  ShellBudget budget;
  ShellFields none({"x", 1, 1}, budget), empty({"x", 1, 1}, budget), unknown({"x", 1, 1}, budget);
  none.add_value({}, false, false);
  CHECK(none.take().empty());
  empty.open();
  CHECK(empty.take().size() == 1);
  unknown.add_unknown("$N");
  CHECK(unknown.take().front().unknown == "$N");
}

TEST_CASE("words and scripts do not grow without end") {
  ShellBudget budget;
  ShellFields fields({"x", 3, 4}, budget);
  CHECK_THROWS_WITH(fields.add(std::string(2'000'000, 'x')),
                    "x:3:4: a word grows beyond 1 MiB; shorten the script");
  CHECK_THROWS_WITH(budget.spend(std::size_t{32} << 20, {"x", 1, 2}),
                    doctest::Contains("x:1:2: the script grows beyond 32 MiB"));
}

TEST_CASE("words of a line between separators, the last with the rest") {
  using Words = std::vector<std::string>;
  CHECK(planner::read_words("4,2,1", ",", 2) == Words{"4", "2,1"});
  CHECK(planner::read_words("4,2", ",", 3) == Words{"4", "2"});
  CHECK(planner::read_words("4  2", " \t", 9) == Words{"4", "2"});
  CHECK(planner::read_words("", ",", 2).empty());
  CHECK(planner::read_words("4 2", "", 2) == Words{"4 2"});
}

}  // namespace shell_fields_test
