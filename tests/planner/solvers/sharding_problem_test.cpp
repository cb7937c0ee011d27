#include "planner/solvers/sharding_problem.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "planner/solvers/milp.hpp"
#include "tests/bench/sharding_instance.hpp"

namespace sharding_problem_test {

using planner::best_sharding;
using planner::price_of;
using planner::Sharding;
using planner::ShardingLimits;
using planner::ShardingMethod;
using planner::ShardingProblem;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct All {
  double best = infinity;   // seconds within the memory limit
  double least = infinity;  // bytes of an allowed choice
  double most = 0;          // bytes of the fastest without a limit
};

// Every choice of every node.
All brute_force(const ShardingProblem& p) {
  All all;
  double fastest = infinity;
  std::vector<int> choice(p.nodes.size(), 0);
  for (;;) {
    const auto price = price_of(p, choice);
    if (price.seconds < infinity) {
      all.least = std::min(all.least, price.bytes);
      if (price.seconds < fastest) {
        fastest = price.seconds;
        all.most = price.bytes;
      }
      if (price.bytes <= p.memory_limit) all.best = std::min(all.best, price.seconds);
    }
    std::size_t v = 0;
    while (v < choice.size() && ++choice[v] == static_cast<int>(p.nodes[v].size())) choice[v++] = 0;
    if (v == choice.size()) return all;
  }
}

// What a result says of itself, checked against the problem.
void check_consistent(const ShardingProblem& p, const Sharding& found) {
  if (found.choice.empty()) {
    CHECK(!found.reason.empty());
    CHECK(found.lower_bound == infinity);
    return;
  }
  REQUIRE(found.choice.size() == p.nodes.size());
  const auto price = price_of(p, found.choice);
  CHECK(found.seconds == price.seconds);
  CHECK(found.bytes == price.bytes);
  CHECK(price.bytes <= p.memory_limit);
  CHECK(found.lower_bound <= found.seconds);
  CHECK(found.reason.empty());
}

ShardingProblem instance(int seed) {
  std::mt19937_64 random(static_cast<std::uint64_t>(seed));
  const RandomSharding shape{.nodes = 1 + seed % 8,
                             .choices = 2 + seed % 3,
                             .extra_edges = seed % 6,
                             .forbidden = seed % 4 == 0 ? 0.3 : 0.05,
                             .rounded = seed % 5 == 0};
  return random_sharding(shape, random);
}

}  // namespace

TEST_CASE("the best sharding is what trying all finds, with memory to spare and without") {
  int binding = 0, impossible = 0, gaps = 0;
  for (int seed = 0; seed < 400; ++seed) {
    ShardingProblem p = instance(seed);
    const All free = brute_force(p);
    for (const double share : {infinity, 0.75, 0.5, 0.25, 0.0, -0.5}) {
      CAPTURE(seed);
      CAPTURE(share);
      p.memory_limit = share == infinity || free.best == infinity
                           ? share
                           : free.least + share * (free.most - free.least);
      const All all = brute_force(p);
      const Sharding found = best_sharding(p);
      check_consistent(p, found);
      CHECK(found.choice.empty() == (all.best == infinity));
      if (found.choice.empty()) {
        ++impossible;
        continue;
      }
      CHECK(found.seconds == doctest::Approx(all.best).epsilon(1e-12));
      CHECK(found.lower_bound == found.seconds);
      binding += found.seconds > free.best * (1 + 1e-9) ? 1 : 0;
      gaps += found.statistics.programs > 0 ? 1 : 0;
    }
  }
  CHECK(binding > 300);     // memory decides some of them
  CHECK(impossible > 100);  // or leaves none
  CHECK(gaps > 100);        // a price on memory alone does not
}

TEST_CASE("integer programming finds the same") {
  if (!planner::milp_available()) {
    CHECK(planner::solve_milp(instance(1), 10).choice.empty());
    return;
  }
  int solved = 0;
  for (int seed = 400; seed < 460; ++seed) {
    ShardingProblem p = instance(seed);
    if (seed % 2 == 0) {
      const Sharding free = best_sharding(p);
      p.memory_limit = free.choice.empty() ? 3 : free.bytes * 0.8;
    }
    CAPTURE(seed);
    const Sharding found = best_sharding(p), witness = planner::solve_milp(p, 30);
    CHECK(found.choice.empty() == witness.choice.empty());
    if (witness.choice.empty()) continue;
    check_consistent(p, witness);
    CHECK(witness.seconds == doctest::Approx(found.seconds).epsilon(1e-6));
    ++solved;
  }
  CHECK(solved > 30);
}

TEST_CASE("larger ones: integer programming agrees, and neither betters the other's bound") {
  if (!planner::milp_available()) return;
  for (int seed = 0; seed < 4; ++seed) {
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    ShardingProblem p =
        random_sharding({.nodes = 12, .choices = 6, .extra_edges = 4, .forbidden = 0}, random);
    p.memory_limit = best_sharding(p).bytes * 0.7;
    CAPTURE(seed);
    const Sharding found = best_sharding(p), witness = planner::solve_milp(p, 30);
    check_consistent(p, found);
    CHECK(found.lower_bound == found.seconds);
    CHECK(witness.seconds == doctest::Approx(found.seconds).epsilon(1e-6));
  }
}

TEST_CASE("the same problem gives the same choice, and time that runs out a bound that holds") {
  std::mt19937_64 random(7);
  ShardingProblem p =
      random_sharding({.nodes = 40, .choices = 8, .extra_edges = 6, .forbidden = 0}, random);
  p.memory_limit = best_sharding(p).bytes * 0.6;
  const Sharding once = best_sharding(p), again = best_sharding(p);
  REQUIRE(!once.choice.empty());
  CHECK(once.choice == again.choice);
  CHECK(once.lower_bound == once.seconds);
  const Sharding rushed = best_sharding(p, [] { return true; });
  CHECK(rushed.lower_bound <= once.seconds);
  CHECK(rushed.seconds >= once.seconds);
  if (!rushed.choice.empty()) check_consistent(p, rushed);
}

TEST_CASE("a graph too wide is narrowed, with a bound, or goes to integer programming") {
  int exact = 0;
  for (int seed = 0; seed < 20; ++seed) {
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    ShardingProblem p =
        random_sharding({.nodes = 7, .choices = 4, .extra_edges = 12, .forbidden = 0}, random);
    if (seed % 2 == 1) p.memory_limit = best_sharding(p).bytes * 0.8;
    const All all = brute_force(p);
    CAPTURE(seed);
    const Sharding found = best_sharding(p, {}, {.states = 60, .milp = false});
    if (found.statistics.states <= 60) continue;
    CHECK(found.method == ShardingMethod::descent);
    CHECK(found.lower_bound <= all.best * (1 + 1e-12));
    if (!found.choice.empty()) {
      CHECK(found.seconds >= all.best * (1 - 1e-12));
      CHECK(price_of(p, found.choice).bytes <= p.memory_limit);
      exact += found.seconds < all.best * (1 + 1e-9) ? 1 : 0;
    }
    const Sharding solved = best_sharding(p, {}, {.states = 60});
    if (!planner::milp_available()) continue;
    CHECK(solved.method == ShardingMethod::integer_program);
    CHECK(solved.choice.empty() == (all.best == infinity));
    if (!solved.choice.empty()) CHECK(solved.seconds == doctest::Approx(all.best).epsilon(1e-6));
  }
  CHECK(exact > 4);
}

TEST_CASE("what makes no problem is told, and nothing throws") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(best_sharding({}).seconds == 0);
  CHECK(best_sharding({}).reason.empty());
  const ShardingProblem no_strategy{{{{1, 1}}, {}}, {}};
  CHECK(best_sharding(no_strategy).reason ==
        "node 1 has no strategy with a finite time and memory");
  const ShardingProblem broken{{{{nan, 1}, {1, infinity}, {1, -1}}}, {}};
  CHECK(best_sharding(broken).reason == "node 0 has no strategy with a finite time and memory");
  const ShardingProblem loose{{{{1, 1}}}, {{0, 3, {0}}}};
  CHECK(best_sharding(loose).reason == "edge 0 joins nodes that are not there");
  const ShardingProblem short_edge{{{{1, 1}}, {{1, 1}, {2, 2}}}, {{0, 1, {0}}}};
  CHECK(best_sharding(short_edge).reason == "edge 0 has 1 costs for 2 pairs of strategies");
  const ShardingProblem barred{{{{1, 1}}, {{1, 1}}}, {{0, 1, {infinity}}}};
  CHECK(best_sharding(barred).reason == "no combination of strategies is allowed");
  const ShardingProblem tight{{{{1, 4096}}, {{1, 4096}}}, {}, 1024};
  CHECK(best_sharding(tight).reason == "memory: at least 8 KiB are needed, 1 KiB are there");
  const ShardingProblem unlimited{{{{1, 1}}}, {}, nan};
  CHECK(best_sharding(unlimited).reason == "the memory limit is not a number");
  const ShardingProblem one{{{{2, 1}, {nan, 0}, {1, 3}}}, {}, 2};
  CHECK(best_sharding(one).choice == std::vector{0});
  const ShardingProblem itself{{{{1, 1}, {2, 1}}}, {{0, 0, {5, 9, 9, 1}}}};
  CHECK(best_sharding(itself).choice == std::vector{1});
}

}  // namespace sharding_problem_test
