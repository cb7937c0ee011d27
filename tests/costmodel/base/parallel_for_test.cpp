#include "costmodel/base/parallel_for.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

namespace parallel_for_test {

TEST_CASE("every piece of work is done once, by any number of threads") {
  for (const int threads : {-1, 1, 2, 7, 100}) {
    for (const std::size_t count : {0, 1, 5, 64}) {
      CAPTURE(threads);
      CAPTURE(count);
      std::vector<std::atomic<int>> done(count);
      costmodel::share_out(count, threads, [&](std::size_t i) { ++done[i]; });
      for (const auto& times : done) CHECK(times == 1);
    }
  }
}

TEST_CASE("what the first of several pieces threw is thrown when all others are done") {
  for (const int threads : {1, 4}) {
    std::atomic<int> done{0};
    std::string what;
    try {
      costmodel::share_out(20, threads, [&](std::size_t i) {
        if (i == 5 || i == 11) throw std::runtime_error(std::to_string(i));
        ++done;
      });
    } catch (const std::runtime_error& fault) {
      what = fault.what();
    }
    CHECK(what == "5");
    CHECK(done == 18);
  }
}

}  // namespace parallel_for_test
