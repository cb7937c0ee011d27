#include "runtime/kernels/rows.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include "runtime/kernels/elementwise.hpp"
#include "tests/runtime/support/host_executor.hpp"

namespace rows_test {

using namespace runtime::kernels;

namespace {

// Few different tokens, one of which stands in one row alone.
std::vector<std::int64_t> some_tokens(std::int64_t rows) {
  std::vector<std::int64_t> tokens;
  for (std::int64_t row = 0; row < rows; ++row) tokens.push_back(row == 5 ? 99 : row * row % 7);
  return tokens;
}

}  // namespace

TEST_CASE("each row is linked to the next with its token, the first of them marked") {
  constexpr std::int64_t rows = 41;
  const auto tokens = some_tokens(rows);
  for (const int members : {1, 3}) {
    CAPTURE(members);
    std::vector<std::int32_t> links(rows, 12345);
    run_team(members, rows, TokenLinks{rows, tokens.data(), links.data()});
    for (std::int64_t row = 0; row < rows; ++row) {
      CAPTURE(row);
      const auto at = [&](std::int64_t i) { return tokens[static_cast<std::size_t>(i)]; };
      std::int64_t next = row + 1;
      while (next < rows && at(next) != at(row)) ++next;
      bool first = true;
      for (std::int64_t before = 0; before < row; ++before) first &= at(before) != at(row);
      const std::int32_t link = links[static_cast<std::size_t>(row)];
      CHECK((link >= 0) == first);
      CHECK(EmbeddingGradient<float>::next_row(link) == next);
    }
  }
}

TEST_CASE("a vector's sum is added to what is there, by any number of threads") {
  const std::vector<float> values{1, 2, 3, 4, 5, 6, 7};
  for (const int members : {1, 2, 5}) {
    double total = 100;
    run_team(members, 1, AddSumOf{7, values.data(), &total});
    CHECK(total == 128);
  }
}

}  // namespace rows_test
