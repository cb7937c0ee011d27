// Collectives against sums done by one rank, and their bytes against the cost model's.
#include "runtime/ranks/collectives.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

#include "costmodel/cost/collective.hpp"
#include "runtime/backend/tags.hpp"
#include "runtime/ranks/thread_transport.hpp"

namespace collectives_test {

using costmodel::Bytes;
using costmodel::CollectiveKind;
using namespace runtime;

namespace {

using Floats = std::vector<float>;

// Different on every rank, and sums of them round: an order that changed would show.
Floats values_of(int rank, std::size_t count) {
  Floats values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = 1.0F / static_cast<float>(3 + rank + 7 * i) - 0.01F * static_cast<float>(rank);
  return values;
}

// What one rank of n makes of its values; returns all ranks' results and counts their bytes.
struct Outcome {
  std::vector<Floats> values;
  std::vector<TrafficCount> traffic;
  std::int64_t total() const {
    return std::accumulate(traffic.begin(), traffic.end(), std::int64_t{0},
                           [](std::int64_t sum, const TrafficCount& t) { return sum + t.total(); });
  }
};

Outcome run(int n, std::size_t count, const std::function<void(Communicator&, Floats&)>& program) {
  Outcome outcome{std::vector<Floats>(static_cast<std::size_t>(n)),
                  std::vector<TrafficCount>(static_cast<std::size_t>(n))};
  run_ranks(n, {}, [&](Transport& t) {
    std::vector<int> ranks(static_cast<std::size_t>(n));
    std::iota(ranks.begin(), ranks.end(), 0);
    const auto me = static_cast<std::size_t>(t.rank());
    Communicator communicator(t, group_of(t, ranks), outcome.traffic[me]);
    outcome.values[me] = values_of(t.rank(), count);
    program(communicator, outcome.values[me]);
  });
  return outcome;
}

double exact_sum(int n, std::size_t count, std::size_t i) {
  double sum = 0;
  for (int rank = 0; rank < n; ++rank) sum += static_cast<double>(values_of(rank, count)[i]);
  return sum;
}

constexpr std::size_t counts[] = {0, 1, 5, 24, 257};

// Each rank's bytes where all chunks are alike; all ranks' bytes always.
void check_bytes(const Outcome& outcome, CollectiveKind kind, int n, std::size_t count,
                 std::int64_t TrafficCount::*column, bool each = true) {
  const Bytes message(static_cast<double>(count * sizeof(float)));
  const double bytes = costmodel::collective_bytes(kind, message, n).value;
  CHECK(static_cast<double>(outcome.total()) == doctest::Approx(n * bytes).epsilon(1e-12));
  for (const TrafficCount& traffic : outcome.traffic) {
    CHECK(traffic.*column == traffic.total());
    if (each && count % static_cast<std::size_t>(n) == 0)
      CHECK(static_cast<double>(traffic.total()) == doctest::Approx(bytes).epsilon(1e-12));
  }
}

}  // namespace

TEST_CASE("chunks differ by one at most, follow one another and make up the whole") {
  for (std::size_t count = 0; count < 40; ++count) {
    for (int parts = 1; parts <= 9; ++parts) {
      std::size_t next = 0, smallest = count, largest = 0;
      for (int i = 0; i < parts; ++i) {
        const Chunk chunk = chunk_of(count, parts, i);
        CHECK(chunk.begin == next);
        next += chunk.size;
        smallest = std::min(smallest, chunk.size);
        largest = std::max(largest, chunk.size);
      }
      CHECK(next == count);
      CHECK(largest - smallest <= 1);
    }
  }
}

TEST_CASE(
    "all-reduce, ring and tree: right, the same bits on every rank and every time, bytes of the "
    "cost model") {
  for (const bool ring : {true, false}) {
    for (int n = 1; n <= 9; ++n) {
      for (const std::size_t count : counts) {
        CAPTURE(ring);
        CAPTURE(n);
        CAPTURE(count);
        const auto once = [&] {
          return run(n, count, [&](Communicator& c, Floats& v) {
            ring ? c.all_reduce(v, Reduction::sum, 1) : c.tree_all_reduce(v, Reduction::sum, 1);
          });
        };
        const Outcome outcome = once();
        CHECK(once().values == outcome.values);
        for (const Floats& values : outcome.values) CHECK(values == outcome.values[0]);
        for (std::size_t i = 0; i < count; ++i)
          CHECK(outcome.values[0][i] == doctest::Approx(exact_sum(n, count, i)).epsilon(1e-6));
        check_bytes(outcome, CollectiveKind::all_reduce, n, count, &TrafficCount::all_reduce, ring);
      }
    }
  }
}

TEST_CASE("the largest of all ranks, exactly") {
  for (const bool ring : {true, false}) {
    const Outcome outcome = run(5, 23, [&](Communicator& c, Floats& v) {
      ring ? c.all_reduce(v, Reduction::max, 1) : c.tree_all_reduce(v, Reduction::max, 1);
    });
    for (std::size_t i = 0; i < 23; ++i) {
      float largest = values_of(0, 23)[i];
      for (int rank = 1; rank < 5; ++rank) largest = std::max(largest, values_of(rank, 23)[i]);
      for (const Floats& values : outcome.values) CHECK(values[i] == largest);
    }
  }
}

TEST_CASE("reduce-scatter leaves each rank its chunk of the sum; all-gather brings chunks to all") {
  for (int n = 1; n <= 8; ++n) {
    for (const std::size_t count : counts) {
      CAPTURE(n);
      CAPTURE(count);
      const Outcome scattered =
          run(n, count, [](Communicator& c, Floats& v) { c.reduce_scatter(v, Reduction::sum, 1); });
      const Outcome gathered =
          run(n, count, [](Communicator& c, Floats& v) { c.all_gather(v, 1); });
      const Outcome both = run(n, count, [](Communicator& c, Floats& v) {
        c.reduce_scatter(v, Reduction::sum, 1);
        c.all_gather(v, 2);
      });
      const Outcome whole =
          run(n, count, [](Communicator& c, Floats& v) { c.all_reduce(v, Reduction::sum, 1); });
      CHECK(both.values == whole.values);
      for (int rank = 0; rank < n; ++rank) {
        const auto at = static_cast<std::size_t>(rank);
        const Chunk chunk = chunk_of(count, n, rank);
        for (std::size_t i = chunk.begin; i < chunk.begin + chunk.size; ++i) {
          CHECK(scattered.values[at][i] == doctest::Approx(exact_sum(n, count, i)).epsilon(1e-6));
          for (const Floats& values : gathered.values)
            CHECK(values[i] == values_of(rank, count)[i]);
        }
      }
      check_bytes(scattered, CollectiveKind::reduce_scatter, n, count,
                  &TrafficCount::reduce_scatter);
      check_bytes(gathered, CollectiveKind::all_gather, n, count, &TrafficCount::all_gather);
    }
  }
}

TEST_CASE("broadcast from any root; each rank but the root is sent the message once") {
  for (int n = 1; n <= 7; ++n) {
    for (int root = 0; root < n; ++root) {
      const Outcome outcome =
          run(n, 19, [&](Communicator& c, Floats& v) { c.broadcast(v, root, 1); });
      for (const Floats& values : outcome.values) CHECK(values == values_of(root, 19));
      CHECK(outcome.total() == (n - 1) * 19 * 4);
      CHECK(outcome.traffic[static_cast<std::size_t>(root)].send >= (n > 1 ? 19 * 4 : 0));
    }
  }
}

TEST_CASE("all-to-all is a transposition") {
  for (int n = 1; n <= 7; ++n) {
    for (const std::size_t count : counts) {
      CAPTURE(n);
      CAPTURE(count);
      const Outcome outcome = run(n, count, [n](Communicator& c, Floats& v) {
        const int me = c.group().position;
        const std::size_t mine = chunk_of(v.size(), n, me).size;
        Floats result(mine * static_cast<std::size_t>(n), -1.0F);
        std::vector<std::span<const float>> out;
        std::vector<std::span<float>> in;
        for (int i = 0; i < n; ++i) {
          const Chunk chunk = chunk_of(v.size(), n, i);
          out.push_back(std::span<const float>(v).subspan(chunk.begin, chunk.size));
          in.push_back(std::span(result).subspan(static_cast<std::size_t>(i) * mine, mine));
        }
        c.all_to_all(out, in, 1);
        v = result;
      });
      for (int rank = 0; rank < n; ++rank) {
        const Chunk mine = chunk_of(count, n, rank);
        Floats expected;
        for (int from = 0; from < n; ++from) {
          const Floats theirs = values_of(from, count);
          const auto begin = theirs.begin() + static_cast<std::ptrdiff_t>(mine.begin);
          expected.insert(expected.end(), begin, begin + static_cast<std::ptrdiff_t>(mine.size));
        }
        CHECK(outcome.values[static_cast<std::size_t>(rank)] == expected);
      }
      check_bytes(outcome, CollectiveKind::all_to_all, n, count, &TrafficCount::all_to_all);
    }
  }
}

TEST_CASE("no rank passes a barrier before all have come") {
  for (int n = 1; n <= 9; ++n) {
    std::atomic<int> came = 0;
    const Outcome outcome = run(n, 0, [&](Communicator& c, Floats&) {
      for (int round = 1; round <= 20; ++round) {
        ++came;
        c.barrier(1);
        CHECK(came >= round * n);
        c.barrier(2);
      }
    });
    CHECK(came == 20 * n);
    CHECK(outcome.total() == 0);
  }
}

TEST_CASE("groups that run at the same time, over the same ranks, do not mix") {
  // Rows and columns of 2 x 3 ranks, and all six, each from a thread of its own.
  std::vector<std::array<Floats, 3>> results(6);
  run_ranks(6, {}, [&](Transport& t) {
    const int row = t.rank() / 3, column = t.rank() % 3;
    const std::vector<std::vector<int>> groups{
        {3 * row, 3 * row + 2, 3 * row + 1}, {column + 3, column}, {5, 4, 3, 2, 1, 0}};
    auto& mine = results[static_cast<std::size_t>(t.rank())];
    std::vector<std::thread> threads;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      threads.emplace_back([&, g] {
        TrafficCount traffic;
        Communicator communicator(t, group_of(t, groups[g]), traffic);
        for (int round = 0; round < 10; ++round) {
          mine[g] = values_of(t.rank(), 100 + g);
          communicator.all_reduce(mine[g], Reduction::sum, collective_tag(static_cast<int>(g)));
        }
      });
    }
    for (auto& thread : threads) thread.join();
  });
  const auto sum = [](const std::vector<int>& ranks, std::size_t count, std::size_t i) {
    double total = 0;
    for (const int rank : ranks) total += static_cast<double>(values_of(rank, count)[i]);
    return total;
  };
  for (int rank = 0; rank < 6; ++rank) {
    const auto& mine = results[static_cast<std::size_t>(rank)];
    const int row = rank / 3, column = rank % 3;
    for (std::size_t i = 0; i < 100; ++i) {
      CHECK(mine[0][i] ==
            doctest::Approx(sum({3 * row, 3 * row + 1, 3 * row + 2}, 100, i)).epsilon(1e-6));
      CHECK(mine[1][i] == doctest::Approx(sum({column, column + 3}, 101, i)).epsilon(1e-6));
      CHECK(mine[2][i] == doctest::Approx(sum({0, 1, 2, 3, 4, 5}, 102, i)).epsilon(1e-6));
    }
  }
}

TEST_CASE("groups that cannot be") {
  run_ranks(3, {}, [](Transport& t) {
    if (t.rank() != 1) return;
    CHECK_THROWS_WITH_AS(group_of(t, {0, 2}), "a group of rank 1 leaves that rank out", RunFault);
    CHECK_THROWS_WITH_AS(group_of(t, {1, 1}), "a group of rank 1 names rank 1 twice", RunFault);
    CHECK_THROWS_WITH_AS(group_of(t, {1, 3}),
                         "a group of rank 1 names rank 3, but the world has 3 ranks", RunFault);
    CHECK(group_of(t, {2, 1}).position == 1);
  });
}

TEST_CASE("a rank that fails inside a collective ends it on all") {
  for (const auto patience : {costmodel::Seconds(0.2), costmodel::Seconds(30)}) {
    CHECK_THROWS_WITH_AS(run_ranks(4, {patience},
                                   [](Transport& t) {
                                     TrafficCount traffic;
                                     Communicator c(t, group_of(t, {0, 1, 2, 3}), traffic);
                                     Floats values(t.rank() == 2 ? 0 : 64);
                                     if (t.rank() == 2) throw RunFault(2, "rank 2: no more");
                                     c.all_reduce(values, Reduction::sum, 1);
                                   }),
                         "rank 2: no more", RunFault);
  }
}

}  // namespace collectives_test
