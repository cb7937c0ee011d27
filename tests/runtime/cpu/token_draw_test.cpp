#include "runtime/cpu/token_draw.hpp"

#include <doctest/doctest.h>

namespace token_draw_test {

namespace cpu = runtime::cpu;

TEST_CASE("synthetic tokens mostly follow from the one before, and stay in the vocabulary") {
  for (const std::int64_t vocab : {10, 256, 50000}) {
    const std::int64_t range = std::min(vocab, cpu::learnable_tokens);
    int follows = 0, counted = 0;
    for (std::uint64_t sample = 0; sample < 40; ++sample)
      for (std::int64_t position = 0; position < 100; ++position) {
        const std::int64_t here = cpu::token(5, sample, position, vocab);
        REQUIRE(here >= 0);
        REQUIRE(here < range);
        follows += cpu::token(5, sample, position + 1, vocab) == (here + 1) % range ? 1 : 0;
        ++counted;
      }
    const double share = static_cast<double>(follows) / counted;
    CHECK(share > 0.74);  // (7/8)², and what chance adds in a small vocabulary
    CHECK(share < 0.82);
  }
}

TEST_CASE("a micro-batch's tokens are its samples', and its labels the tokens after them") {
  const cpu::TokenDraw whole{
      .seed = 5, .first_sample = 7, .sequences = 4, .sequence = 9, .vocab = 300};
  cpu::TokenDraw labels = whole, last = whole;
  labels.labels = true;
  last.first_sample += 3;
  last.sequences = 1;
  CHECK(whole.count() == 36);
  for (std::int64_t i = 0; i < whole.count(); ++i) {
    CAPTURE(i);
    CHECK(whole.id(i) == cpu::token(5, static_cast<std::uint64_t>(7 + i / 9), i % 9, 300));
    if (i % 9 < 8) CHECK(labels.id(i) == whole.id(i + 1));
    if (i >= 27) CHECK(last.id(i - 27) == whole.id(i));
  }
}

}  // namespace token_draw_test
