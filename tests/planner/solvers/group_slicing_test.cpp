// Stage slicing over groups of devices: against every slicing there is, and what has none.
#include "planner/solvers/group_slicing.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include "tests/planner/support/slicing_brute_force.hpp"

namespace group_slicing_test {

using planner::any_in_flight;
using planner::best_group_slicing;
using planner::best_slicing;
using planner::Slicing;
using planner::SlicingProblem;
using slicing::BruteForce;
using slicing::check_consistent;
using slicing::Draw;
using slicing::infinity;

namespace {

// Whole times, so that sums are exact in any order.
SlicingProblem random_problem(int layers, int devices, std::int64_t m, bool work, int slowness,
                              Draw& draw) {
  SlicingProblem p;
  p.layers = layers;
  p.devices = devices;
  p.micro_batches = m;
  p.clear_ranges();
  for (int first = 0; first < layers; ++first) {
    for (int end = first + 1; end <= layers; ++end) {
      if (draw.between(1, 12) == 1) continue;  // no stage
      p.range_class[p.at(first, end)] = static_cast<std::int32_t>(p.options.size());
      auto& list = p.options.emplace_back();
      for (int n = 1; n <= devices; n *= 2) {
        for (int k = draw.between(0, 2); k >= 0; --k) {
          const int seconds =
              work ? slowness * (end - first) * draw.between(20, 30) / n + 3 : draw.between(1, 40);
          const int most = draw.between(1, 3) == 1 ? draw.between(0, 5) : any_in_flight;
          list.push_back({n, static_cast<double>(seconds), most, draw.between(0, 99)});
        }
      }
    }
  }
  return p;
}

SlicingProblem one_option(int layers, int devices, double seconds, int most = any_in_flight) {
  SlicingProblem p;
  p.layers = layers;
  p.devices = devices;
  p.micro_batches = 4;
  p.clear_ranges();
  for (int first = 0; first < layers; ++first)
    for (int end = first + 1; end <= layers; ++end) p.range_class[p.at(first, end)] = 0;
  p.options.push_back({{1, seconds, most, 0}});
  return p;
}

}  // namespace

TEST_CASE("as good as every slicing there is, over one to three groups") {
  int none = 0, some = 0, several_stages = 0;
  for (unsigned seed = 0; seed < 600; ++seed) {
    Draw draw(seed);
    const int layers = draw.between(1, 8), count = seed % 5 == 0 ? draw.between(1, 3) : 2;
    const int m = std::vector<int>{1, 2, 3, 8, 64}[static_cast<std::size_t>(draw.between(0, 4))];
    const bool work = draw.between(0, 1) == 1;
    std::vector<SlicingProblem> groups;
    for (int g = 0; g < count; ++g) {
      const int devices = count == 3 ? draw.between(1, 2) : draw.between(1, 4);
      groups.push_back(random_problem(layers, devices, m, work, draw.between(1, 4), draw));
    }
    const double best = BruteForce(groups).best();
    const Slicing found = best_group_slicing(groups);
    INFO("seed " << seed);
    if (best == infinity) {
      ++none;
      CHECK(found.stages.empty());
      CHECK(!found.reason.empty());
      CHECK(found.lower_bound == infinity);
      continue;
    }
    ++some;
    REQUIRE(!found.stages.empty());
    CHECK(found.reason.empty());
    CHECK(found.objective == best);
    check_consistent(groups, found);
    several_stages += found.stages.size() > groups.size() ? 1 : 0;
  }
  CHECK(none > 20);
  CHECK(some > 300);
  CHECK(several_stages > 50);
}

TEST_CASE("one group is what stage slicing solves") {
  for (unsigned seed = 0; seed < 100; ++seed) {
    Draw draw(1000 + seed);
    const SlicingProblem p = random_problem(draw.between(2, 12), draw.between(1, 8),
                                            draw.between(1, 9), seed % 2 == 0, 1, draw);
    INFO("seed " << seed);
    CHECK(best_group_slicing({p}).objective == best_slicing(p).objective);
  }
}

TEST_CASE("what has no slicing says why") {
  CHECK(best_group_slicing({}).reason == "there are no devices");
  CHECK(best_group_slicing({one_option(0, 1, 1)}).reason == "there are no layers");
  CHECK(best_group_slicing({one_option(3, 0, 1)}).reason == "a group has no devices");
  CHECK(best_group_slicing({one_option(1, 1, 1), one_option(1, 1, 1)}).reason ==
        "1 layers for 2 groups: every group needs a stage of a layer at least");
  // Five devices of one a stage, four layers.
  CHECK(best_group_slicing({one_option(4, 3, 1), one_option(4, 2, 1)}).reason ==
        "no stages use up the devices of every group");
  CHECK(best_group_slicing({one_option(4, 2, 1, 1), one_option(4, 1, 1)}).reason ==
        "no slicing fits in memory with the micro-batches in flight");
  CHECK(best_group_slicing({one_option(4, 2, infinity), one_option(4, 1, 1)}).reason ==
        "no stages use up the devices of every group");
  CHECK(best_group_slicing({one_option(4, 2, 1), one_option(4, 1, 1)}, [] {
          return true;
        }).reason == "time ran out before a slicing was found");
}

TEST_CASE("one giant layer decides, and is given the quick devices") {
  // Layer 0 takes 100 s on one kind and 400 s on the other; all others a second.
  const auto problem = [](double giant) {
    SlicingProblem p;
    p.layers = 6;
    p.devices = 2;
    p.micro_batches = 10;
    p.clear_ranges();
    for (int first = 0; first < p.layers; ++first)
      for (int end = first + 1; end <= p.layers; ++end) {
        p.range_class[p.at(first, end)] = static_cast<std::int32_t>(p.options.size());
        const double seconds = (first == 0 ? giant - 1 : 0) + (end - first);
        p.options.push_back({{1, seconds, any_in_flight, 0}, {2, seconds / 2, any_in_flight, 1}});
      }
    return p;
  };
  const Slicing quick = best_group_slicing({problem(100), problem(400)});
  REQUIRE(quick.stages.size() >= 2);
  CHECK(quick.stages.front().end == 1);
  CHECK(quick.stages.front().option.devices == 2);
  CHECK(quick.longest == 50);
  CHECK(best_group_slicing({problem(400), problem(100)}).longest == 200);
}

}  // namespace group_slicing_test
