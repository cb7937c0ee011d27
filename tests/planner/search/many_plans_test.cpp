#include "planner/search/many_plans.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "costmodel/estimate/plan_estimate.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace many_plans_test {

using namespace planner;
using namespace costmodel;
using fixtures::config_error;
using fixtures::contains;

namespace {

Scenario tiny() {
  const auto path = fixtures::configs();
  return load_scenario(scenario_file("tiny-gpt-cpu", path), path,
                       {"cluster.devices=4", "plan={micro_batch: 1}"});
}

}  // namespace

TEST_CASE("columns of plans have the figures of each plan alone; equal plans are one") {
  const Scenario scenario = tiny();
  const std::vector<std::int64_t> tp{1, 2, 4, 2, 3}, pp{4, 2, 1, 2, 1}, zero{0, 0, 0, 0, 0};
  const std::vector<PlanColumn> columns{{"tp", tp}, {"pp", pp}, {"zero", zero}};
  const ManyPlans all = evaluate_many(scenario, columns, 2);
  CHECK(all.distinct == 4);
  REQUIRE(all.figures.size() == plan_figures().size());
  for (std::size_t i = 0; i < 4; ++i) {
    Scenario one = scenario;
    one.plan.tp = static_cast<int>(tp[i]);
    one.plan.pp = static_cast<int>(pp[i]);
    one.plan.zero = 0;
    const Estimate expected = estimate_of(one.model, one.cluster, one.training, resolve_plan(one));
    for (std::size_t f = 0; f < all.figures.size(); ++f)
      CHECK(all.figures[f][i] == plan_figures()[f].of(expected));
    CHECK(all.errors[i].empty());
  }
  CHECK(std::isnan(all.figures[0][4]));
  CHECK(contains(all.errors[4], "tp"));
  CHECK(evaluate_many(scenario, columns, 1).figures[0][3] == all.figures[0][3]);
}

TEST_CASE("what is no column of numbers is refused, and an end is an error of the rest") {
  const std::vector<std::int64_t> one{1}, two{1, 2}, wrong{-1, 0, std::int64_t{1} << 32};
  CHECK(contains(config_error([&] {
                   evaluate_many(tiny(), {{"tpp", one}}, 1);
                 }),
                 "did you mean 'tp'?"));
  CHECK(contains(config_error([&] {
                   evaluate_many(tiny(), {{"tp", one}, {"pp", two}}, 1);
                 }),
                 "give every key as many"));
  for (const char* key : {"tp", "pp", "dp", "micro_batch", "vpp", "dp_replicate", "cp", "ep"}) {
    for (const std::string& error : evaluate_many(tiny(), {{key, wrong}}, 1).errors)
      CHECK(contains(error, "allowed: whole numbers 1 to"));
  }
  CHECK(contains(evaluate_many(tiny(), {{"sequence_parallel", wrong}}, 1).errors[0],
                 "write true or false"));
  CHECK(evaluate_many(tiny(), {{"sequence_parallel", one}}, 1).errors[0].find("true") ==
        std::string::npos);
  const ManyPlans stopped = evaluate_many(tiny(), {{"tp", two}}, 1, [] { return true; });
  CHECK(stopped.errors[0] == "interrupted");
}

}  // namespace many_plans_test
