// Sums of launch scripts.
#include "planner/exchange/shell_arithmetic.hpp"

#include <doctest/doctest.h>

#include <string>

namespace shell_arithmetic_test {

TEST_CASE("whole numbers, variables and brackets; nothing for what is none") {
  const planner::VariableText four = [](const std::string& name) {
    return name == "N" ? std::optional<std::string>("4") : std::nullopt;
  };
  const auto value = [&](const char* text) { return planner::shell_arithmetic(text, four); };
  CHECK(value(" $N * (2 + 3) - 7 / 2 ") == 17);
  CHECK(value("${N} % 3") == 1);
  CHECK_FALSE(value("M + 1"));
  CHECK_FALSE(value("1 / 0"));
  CHECK_FALSE(value("9223372036854775807 + 1"));
  CHECK_FALSE(value("(1"));
  CHECK_FALSE(value("1 << 2"));
  CHECK(value("N >= 4 && N != 5") == 1);
  CHECK(value("N < 4 || N == 5") == 0);
  CHECK(value("N == 4 || 0 && 0") == 1);  // && binds before ||
  CHECK(value("(N <= 3) + (N > 3) * 2") == 2);
  CHECK_FALSE(value("N > M"));
  std::string many = "0";
  for (int i = 0; i < 1'000'000; ++i) many += "||0";
  CHECK(value(many.c_str()) == 0);
}

}  // namespace shell_arithmetic_test
