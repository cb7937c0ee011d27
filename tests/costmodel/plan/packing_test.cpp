#include "costmodel/plan/packing.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

using namespace costmodel;

TEST_CASE("samples of one length: a sequence holds as many as fit") {
  const Packing packing = packing_of({.mean = 1000}, 4096, true);
  CHECK(packing.samples == doctest::Approx(4).epsilon(1e-2));  // the last sequence is not full
  CHECK(packing.filled == doctest::Approx(4000.0 / 4096).epsilon(1e-2));
  CHECK(packing.attended == doctest::Approx(4 * 1000.0 * 1000 / 4096).epsilon(1e-2));
  CHECK(packing.spread <= 0.05 * packing.attended);
  const Packing whole = packing_of({.mean = 4096}, 4096, true);
  CHECK(whole.samples == 1);
  CHECK(whole.filled == 1);
  CHECK(whole.attended == 4096);
  CHECK(whole.spread == 0);
  CHECK(longest_excess(whole, 4096, 1024, 1) == 0);
}

TEST_CASE("first fit leaves little room where samples are short") {
  const Packing packing = packing_of({.mean = 500, .p95 = 1500}, 8192, true);
  CHECK(packing.filled > 0.97);
  CHECK(packing.filled <= 1);
  CHECK(std::abs(packing.samples * 500 / (packing.filled * 8192) - 1) <= 0.05);
  // The size-biased mean of a log-normal is mean exp(sigma²); here sigma = 1.645 - sqrt(1.645² -
  // 2 ln 3) = 0.937.
  const double biased = 500 * std::exp(0.937 * 0.937);
  CHECK(std::abs(packing.attended / (packing.filled * biased) - 1) <= 0.15);
}

TEST_CASE("where thousands share a sequence its sums are those of first fit, and they fill it") {
  const LengthSpec lengths{.mean = 50, .p95 = 120};
  const Packing some = packing_of(lengths, 40'000, true), many = packing_of(lengths, 60'000, true);
  CHECK(some.samples * 1.5 == doctest::Approx(many.samples).epsilon(0.02));
  CHECK(some.attended == doctest::Approx(many.attended).epsilon(0.03));
  CHECK(some.spread / many.spread == doctest::Approx(std::sqrt(1.5)).epsilon(0.25));
  CHECK(packing_of({.mean = 1}, 100'000'000, true).samples == doctest::Approx(1e8));
  CHECK(packing_of({.mean = 1}, 100'000'000, true).filled == 1);
}

TEST_CASE("padded samples: one a sequence, filled by their mean; longer ones are cut") {
  const Packing padded = packing_of({.mean = 512, .least = 24, .most = 1000}, 1024, false);
  CHECK(padded.samples == 1);
  CHECK(std::abs(padded.filled - 0.5) <= 0.01);
  CHECK(padded.attended == 0);  // attention over all of it
  const Packing cut = packing_of({.mean = 1500, .least = 1000, .most = 2000}, 1200, false);
  CHECK(cut.filled <= 1);
  CHECK(cut.filled == doctest::Approx(0.8 + 0.2 * 1100.0 / 1200).epsilon(1e-2));
}

TEST_CASE("the longest of many replicas, held against drawn ones") {
  const Packing packing{.packed = true, .attended = 1000, .spread = 250};
  Draws draws;
  for (const int ranks : {2, 8, 64}) {
    double sum = 0;
    constexpr int batches = 4, times = 4000;
    for (int i = 0; i < times; ++i) {
      double longest = 0;
      for (int r = 0; r < ranks; ++r) {
        double of_rank = 0;
        for (int k = 0; k < batches; ++k) of_rank += 1000 + 250 * draws.normal();
        longest = std::max(longest, of_rank / batches);
      }
      sum += longest / 1000 - 1;
    }
    CAPTURE(ranks);
    const double excess = longest_excess(packing, 8192, ranks, batches);
    CHECK(std::abs(excess / (sum / times) - 1) <= 0.08);
  }
  CHECK(longest_excess(packing, 8192, 1, 4) == 0);
  // Sequences cannot have more than one sample that fills them.
  CHECK(longest_excess({.packed = true, .attended = 1000, .spread = 5000}, 1100, 4096, 1) ==
        doctest::Approx(0.1));
}
