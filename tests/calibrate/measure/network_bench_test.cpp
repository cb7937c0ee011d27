// Collectives of ranks that are there already: rank 0 asks, the others take part.
#include "calibrate/measure/network_bench.hpp"

#include <doctest/doctest.h>

#include <atomic>

#include "costmodel/base/error.hpp"
#include "runtime/ranks/thread_transport.hpp"

namespace network_bench_test {

using calibrate::CollectiveTimer;
using costmodel::CollectiveKind;
using costmodel::Seconds;

TEST_CASE("a world of ranks measures collectives of some of them, and comes to its end") {
  std::atomic<int> led = 0, ended = 0;
  runtime::run_ranks(3, {}, [&](runtime::Transport& transport) {
    calibrate::with_ranks(transport, [&](const CollectiveTimer& time) {
      ++led;
      CHECK(transport.rank() == 0);
      const calibrate::StopRule rule{.least = 3, .longest = Seconds(0.05)};
      for (const auto kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather,
                              CollectiveKind::reduce_scatter}) {
        for (const int ranks : {2, 3}) {
          const auto timing = time(kind, 4096, ranks, rule);
          CHECK(timing.repeats >= 2);
          CHECK(timing.least > Seconds(0));
          CHECK(timing.least <= timing.median);
        }
      }
      CHECK(time(CollectiveKind::send, 4096, 2, rule).median > Seconds(0));
    });
    ++ended;
  });
  CHECK(led == 1);
  CHECK(ended == 3);
}

TEST_CASE("a larger message takes longer") {
  const calibrate::StopRule rule{.least = 5, .longest = Seconds(0.2)};
  const auto small = calibrate::time_collective(CollectiveKind::all_reduce, 4 << 10, 2, rule);
  const auto large = calibrate::time_collective(CollectiveKind::all_reduce, 16 << 20, 2, rule);
  CHECK(large.least > 3 * small.least);
}

}  // namespace network_bench_test
