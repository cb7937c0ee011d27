#include "planner/solvers/cut_list.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "tests/planner/support/drawn_pipeline.hpp"

namespace cut_list_test {

using drawn_pipeline::Drawn;
using planner::CutProblem;
using planner::cuts_within;
using planner::CutStage;

namespace {

using Cuts = std::vector<std::vector<int>>;

// In the order of their ends.
Cuts all_within(Drawn& d, double limit) {
  Cuts cuts;
  std::vector<int> ends;
  drawn_pipeline::all_cuts(d, ends, [&](const std::vector<int>& cut) {
    if (fits(d, cut) && bound_of(d, cut) <= limit) cuts.push_back(cut);
  });
  return cuts;
}

}  // namespace

TEST_CASE("the cuts within a limit are those that trying every cut finds, or they are too many") {
  fixtures::Random random(20265);
  int none = 0, several = 0, refused = 0;
  for (int round = 0; round < 1500; ++round) {
    Drawn d = drawn_pipeline::draw(random, round % 2 == 0);
    CAPTURE(round);
    CutProblem p = d.problem();
    const auto best = planner::best_cut(p);
    p.limit = best.ends.empty() ? 100 : best.bound * random.real(0.99, 1.1);
    const Cuts all = all_within(d, p.limit);
    const auto found = cuts_within(p, all.size());
    REQUIRE(found.has_value());
    CHECK(*found == all);
    none += all.empty() ? 1 : 0;
    several += all.size() > 3 ? 1 : 0;
    if (all.empty()) continue;
    CHECK_FALSE(cuts_within(p, all.size() - 1).has_value());
    ++refused;
  }
  CHECK(none > 200);
  CHECK(several > 100);
  CHECK(refused > 500);
}

TEST_CASE("what is too much to look at is left") {
  CutStage stage{1, 2, 100, 0};
  CutProblem p{.layers = 60, .stages = 8, .micro_batches = 4, .stage = {}};
  p.stage = [&stage](int, int) { return &stage; };
  CHECK_FALSE(cuts_within(p, 1'000'000).has_value());
}

}  // namespace cut_list_test
