// The table of hypotheses: names, reasons and odds.
#include "planner/diagnosis/job_hypotheses.hpp"

#include <doctest/doctest.h>

#include <numeric>
#include <set>

namespace job_hypotheses_test {

using namespace planner;

TEST_CASE("names differ, weights are positive, and each says why and what to do") {
  std::set<std::string_view> names;
  for (const Hypothesis& h : hypotheses()) {
    CAPTURE(h.name);
    CHECK(names.insert(h.name).second);
    CHECK(h.weight > 0);
    CHECK_FALSE(h.because.empty());
    CHECK(h.remedy.ends_with("."));
    CHECK_FALSE(h.test.empty());
    CHECK(std::accumulate(h.shapes->begin(), h.shapes->end(), 0.0) ==
          doctest::Approx(1).epsilon(1e-9));
  }
  CHECK(hypotheses().front().name == "as-configured");
}

TEST_CASE("a line that names a fault makes it likelier") {
  for (const Hypothesis& h : hypotheses()) {
    CAPTURE(h.name);
    for (const SignOdds& odds : h.signs) CHECK((odds.times == 0 || odds.times > 1));
  }
}

}  // namespace job_hypotheses_test
