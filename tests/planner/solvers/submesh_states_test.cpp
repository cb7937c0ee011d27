// One limit on the time of a cut: what a stage leaves for those before it, and where the least
// limit with a cut lies.
#include "planner/solvers/submesh_states.hpp"

#include <doctest/doctest.h>

namespace submesh_states_test {

using planner::latest_start;
using planner::SlicingProblem;
using planner::SubmeshProblem;
using planner::SubmeshStates;
using planner::TimedStage;

namespace {

// Layers of equal time on one device each.
SlicingProblem even(int layers, int devices, std::int64_t m, int most_in_flight) {
  SlicingProblem p;
  p.layers = layers;
  p.devices = devices;
  p.micro_batches = m;
  p.clear_ranges();
  for (int first = 0; first < layers; ++first) {
    for (int end = first + 1; end <= layers; ++end) {
      p.range_class[p.at(first, end)] = static_cast<std::int32_t>(p.options.size());
      const double count = end - first;
      p.options.push_back(
          {{.most_in_flight = most_in_flight, .forward = count, .backward = 2 * count}});
    }
  }
  return p;
}

}  // namespace

TEST_CASE("what a stage leaves for those before it") {
  const TimedStage stage{.forward = 1, .backward = 2, .passing = 0, .after = 5};
  // The last stage: its own work. The first of four: what comes back, and as often.
  CHECK(latest_start(stage, 100, 0, 0, 8) == 100 - 5 - 24);
  CHECK(latest_start(stage, 100, 9, 3, 8) == 100 - 5 - (8 - 4 + 1) * 3 - 2 * 9);
  // Fewer micro-batches than stages: all of them before the first backward.
  CHECK(latest_start(stage, 100, 9, 3, 2) == 100 - 5 - (2 * 3 + 9 - 1));
  // A long way back for every fourth micro-batch.
  CHECK(latest_start(stage, 1000, 100, 3, 9) == 1000 - 5 - 3 * 103);
}

TEST_CASE("a cut is found from its time on, and none below") {
  const SlicingProblem group = even(8, 4, 6, planner::any_in_flight);
  SubmeshProblem problem;
  problem.groups = {&group};
  SubmeshStates states(problem);
  const double time = (6 + 4 - 1) * 2 * 3;  // four even stages
  CHECK(states.solve(time * 0.999) == SubmeshStates::Outcome::none);
  REQUIRE(states.solve(time * 1.001) == SubmeshStates::Outcome::found);
  CHECK(states.stages().size() == 4);
  CHECK(states.time(states.stages()) == time);
  CHECK(states.shortest() == 18);
  CHECK(states.longest() >= time);
}

TEST_CASE("memory for few micro-batches in flight leaves no long pipeline") {
  const SlicingProblem group = even(8, 4, 6, 3);
  SubmeshProblem problem;
  problem.groups = {&group};
  SubmeshStates states(problem);
  CHECK(states.solve(states.longest()) == SubmeshStates::Outcome::none);
}

TEST_CASE("no effort left: unsettled") {
  const SlicingProblem group = even(8, 4, 6, planner::any_in_flight);
  SubmeshProblem problem;
  problem.groups = {&group};
  problem.most_effort = 10;
  SubmeshStates states(problem);
  CHECK(states.solve(1000) == SubmeshStates::Outcome::unsettled);
  CHECK(states.effort() > 10);
}

}  // namespace submesh_states_test
