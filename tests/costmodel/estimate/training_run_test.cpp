#include "costmodel/estimate/training_run.hpp"

#include <doctest/doctest.h>

#include <random>
#include <string>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/model/parameter_count.hpp"
#include "tests/costmodel/support/scenarios.hpp"

using costmodel::Seconds;

TEST_CASE("No other time between checkpoints keeps more than Daly's, to his order") {
  for (const double write : {1.0, 30.0, 600.0}) {
    for (const double between : {3600.0, 11'000.0, 200'000.0}) {
      const Seconds w(write), m(between), r(900);
      const Seconds best = costmodel::checkpoint_interval(w, m);
      const double kept = costmodel::kept_fraction(w, best, r, m);
      CHECK(kept > 0);
      CHECK(kept < 1);
      for (const double factor : {0.5, 0.8, 1.25, 2.0})
        CHECK(costmodel::kept_fraction(w, best * factor, r, m) < kept * (1 + 1e-3));
    }
  }
}

TEST_CASE("What failures leave is what a job keeps that fails at random") {
  constexpr double write = 40, every = 1500, restart = 700, between = 9000;
  std::mt19937 random(7);
  std::exponential_distribution<double> failure(1 / between);
  double time = 0, kept = 0, next = failure(random);
  while (kept < 4e8) {
    double end = time + every + write;
    if (next >= end) {
      time = end;
      kept += every;
      continue;
    }
    time = next;  // a restart that fails begins again
    for (;;) {
      next = time + failure(random);
      if (next >= time + restart) break;
      time = next;
    }
    time += restart;
  }
  const double fraction =
      costmodel::kept_fraction(Seconds(write), Seconds(every), Seconds(restart), Seconds(between));
  CHECK(kept / time == doctest::Approx(fraction).epsilon(0.01));
}

TEST_CASE("A checkpoint holds the layers of multi-token prediction") {
  const auto checkpoint = [](int layers) {
    const auto s = scenarios::read(
        "model: {base: deepseek-v3, mtp_layers: " + std::to_string(layers) +
        "}\ncluster: {base: dgx-h100, devices: 1024}\ntraining: {global_batch: 1024, sequence: "
        "4096}\nplan: {pp: 4, ep: 32, zero: 1, stage_layers: [16, 15, 15, 15]}\n");
    costmodel::Evaluator evaluator(s.model, s.cluster, s.training);
    const auto e = evaluator.estimate(costmodel::resolve_plan(s));
    const double parameters = e.parameters + costmodel::mtp_parameter_count(s.model);
    return costmodel::goodput(e, s.cluster, s.training).checkpoint / parameters;
  };
  CHECK(checkpoint(1).value == doctest::Approx(checkpoint(0).value));
  CHECK(checkpoint(1).value > 0);
}

TEST_CASE(
    "A run of so many tokens: days, device hours, cost and energy follow from the iteration") {
  const auto scenario =
      scenarios::read(scenarios::tiny + "cluster: {base: laptop-cpu, devices: 2}\n");
  auto cluster = scenario.cluster;
  auto training = scenario.training;
  costmodel::Evaluator evaluator(scenario.model, cluster, training);
  costmodel::ParallelPlan plan;
  plan.dp = static_cast<int>(cluster.devices);
  const auto estimate = evaluator.estimate(plan);
  auto goodput = costmodel::goodput(estimate, cluster, training);
  CHECK_FALSE(training_run(estimate, goodput, cluster, training));
  CHECK(goodput.assumed.size() == 3);

  training.run_tokens = 1000.0 * static_cast<double>(training.global_batch * training.tokens());
  cluster.operation = {.usd_per_device_hour = 2,
                       .price_date = "2026-11",
                       .watts_per_device = 500,
                       .device_hours_per_failure = 1000,
                       .restart = Seconds(60),
                       .storage = costmodel::BytesPerSecond(1e9)};
  goodput = costmodel::goodput(estimate, cluster, training);
  CHECK(goodput.assumed.empty());
  CHECK(goodput.between_failures.value ==
        doctest::Approx(1000 * 3600.0 / static_cast<double>(cluster.devices)));
  const auto run = training_run(estimate, goodput, cluster, training);
  REQUIRE(run);
  CHECK(run->iterations == 1000);
  CHECK(run->days == doctest::Approx(1000 * estimate.iteration.value / 86'400));
  CHECK(run->days_with_failures == doctest::Approx(run->days / goodput.fraction));
  CHECK(run->device_hours ==
        doctest::Approx(24 * run->days_with_failures * static_cast<double>(cluster.devices)));
  CHECK(run->usd.value_or(0) == doctest::Approx(2 * run->device_hours));
  CHECK(run->megawatt_hours.value_or(0) == doctest::Approx(500e-6 * run->device_hours));
}
