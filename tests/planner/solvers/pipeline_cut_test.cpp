#include "planner/solvers/pipeline_cut.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "costmodel/schedule/simulator.hpp"
#include "tests/planner/support/drawn_pipeline.hpp"

namespace pipeline_cut_test {

using drawn_pipeline::all_cuts;
using drawn_pipeline::bound_of;
using drawn_pipeline::draw;
using drawn_pipeline::Drawn;
using planner::best_cut;
using planner::CutProblem;
using planner::infinity;

namespace {

// The end of this cut's pipeline, simulated.
double end_of(Drawn& d, const std::vector<int>& ends) {
  std::vector<double> scratch;
  const auto program = costmodel::compile(
      costmodel::generate(costmodel::ScheduleKind::one_f_one_b, d.stages, 1, d.micro_batches));
  return simulate_makespan(program, times_of(d, ends), scratch).value +
         d.stage(0, ends.front())->after;
}

double best_of_all(Drawn& d, double (*of)(Drawn&, const std::vector<int>&) = &bound_of) {
  double best = infinity;
  std::vector<int> ends;
  all_cuts(d, ends, [&](const std::vector<int>& cut) {
    if (fits(d, cut)) best = std::min(best, of(d, cut));
  });
  return best;
}

}  // namespace

TEST_CASE("the best cut is what trying every cut finds, where times are sums") {
  fixtures::Random random(20261);
  int none = 0, bound_by_memory = 0;
  for (int round = 0; round < 2000; ++round) {
    Drawn d = draw(random, true);
    CAPTURE(round);
    const double best = best_of_all(d);
    const auto cut = best_cut(d.problem());
    CHECK(cut.ends.empty() == (best == infinity));
    CHECK(some_cut_fits(d.problem()) == (best < infinity));
    none += cut.ends.empty() ? 1 : 0;
    if (cut.ends.empty()) continue;
    CHECK(cut.bound >= best * (1 - 1e-12));
    if (d.transfer == 0) CHECK(cut.bound == doctest::Approx(best).epsilon(1e-12));
    CHECK(fits(d, cut.ends));
    CHECK(bound_of(d, cut.ends) == doctest::Approx(best).epsilon(1e-12));
    Drawn roomy = d;
    roomy.memory = 1e6;
    roomy.known.clear();
    const auto free = best_cut(roomy.problem());
    CHECK(free.bound <= cut.bound * (1 + 1e-12));
    bound_by_memory += free.bound < cut.bound * (1 - 1e-9) ? 1 : 0;
  }
  CHECK(none > 200);
  CHECK(bound_by_memory > 200);
}

TEST_CASE("no cut is below the bound where times are no sums") {
  fixtures::Random random(20262);
  int looser = 0, any = 0;
  for (int round = 0; round < 2000; ++round) {
    Drawn d = draw(random, false);
    CAPTURE(round);
    const double best = best_of_all(d);
    const auto cut = best_cut(d.problem());
    CHECK(cut.ends.empty() == (best == infinity));
    if (cut.ends.empty()) continue;
    ++any;
    CHECK(cut.bound <= best_of_all(d, &end_of) * (1 + 1e-12));
    if (d.transfer == 0) CHECK(cut.bound <= best * (1 + 1e-12));
    CHECK(cut.bound >= best * 0.8);
    looser += cut.bound < best * (1 - 1e-9) ? 1 : 0;
  }
  CHECK(any > 1000);
  CHECK(looser > 0);
}

TEST_CASE("round trips raise the bound where transfers count, and no simulated cut is below it") {
  fixtures::Random random(20265);
  int raised = 0, any = 0;
  for (int round = 0; round < 600; ++round) {
    Drawn d = draw(random, round % 2 == 0);
    d.stages = std::min(random.integer(3, 6), d.layers);
    d.micro_batches = random.integer(1, 24);
    d.transfer = random.real(0.1, 1);
    CAPTURE(round);
    const double ended = best_of_all(d, &end_of);
    const auto cut = best_cut(d.problem());
    if (cut.ends.empty()) continue;
    ++any;
    CHECK(cut.bound <= ended * (1 + 1e-12));
    raised += cut.bound > best_of_all(d) * (1 + 1e-6) ? 1 : 0;
  }
  CHECK(any > 200);
  CHECK(raised > 50);
}

TEST_CASE("of equal stages the bound is all that transfers cost but a part of each trip's turn") {
  // 8 stages, 1 + 2 s a micro-batch and 0.1 s a transfer, 49 micro-batches.
  Drawn d{};
  d.stages = d.layers = 8;
  d.micro_batches = 49;
  d.transfer = 0.1;
  d.memory = 1e6;
  d.forward.assign(8, 1);
  d.backward.assign(8, 2);
  d.kept.assign(8, 1);
  const double ended = best_of_all(d, &end_of);
  CHECK(best_of_all(d) < ended * 0.96);
  CHECK(best_cut(d.problem()).bound > ended * 0.98);
  CHECK(best_cut(d.problem()).bound <= ended * (1 + 1e-12));
}

TEST_CASE("a limit leaves out what is slower, and says whether memory is to blame") {
  fixtures::Random random(20263);
  int slow = 0, full = 0;
  for (int round = 0; round < 500; ++round) {
    Drawn d = draw(random, true);
    d.transfer = 0;
    CAPTURE(round);
    const double best = best_of_all(d);
    CutProblem p = d.problem();
    if (best < infinity) {
      p.limit = best * (1 + 1e-9);
      CHECK(best_cut(p).bound == doctest::Approx(best).epsilon(1e-12));
    }
    p.limit = (best < infinity ? best : 100) * (1 - 1e-9);
    const auto cut = best_cut(p);
    CHECK(cut.ends.empty());
    Drawn roomy = d;
    roomy.memory = 1e6;
    roomy.known.clear();
    CHECK(cut.too_slow == (best_of_all(roomy) > p.limit));
    slow += cut.too_slow ? 1 : 0;
    full += cut.too_slow ? 0 : 1;
  }
  CHECK(slow > 50);
  CHECK(full > 50);
}

TEST_CASE("a cut that is interrupted says so") {
  fixtures::Random random(20264);
  Drawn d = draw(random, true);
  d.memory = 1e6;
  CutProblem p = d.problem();
  p.expired = [](std::uint64_t) { return true; };
  CHECK(best_cut(p).expired);
  CHECK(best_cut(p).ends.empty());
  CHECK_FALSE(best_cut(p).too_slow);
}

}  // namespace pipeline_cut_test
