#include "costmodel/serving/served_load.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "costmodel/serving/serving_estimate.hpp"
#include "tests/costmodel/serving/support/served.hpp"

using namespace costmodel;

namespace {

ServingScenario with_clients(std::int64_t clients, int dp) {
  auto s = served::usual("{tp: 1, dp: " + std::to_string(dp) + "}");
  s.serving.concurrency = clients;
  return s;
}

ServingScenario large(double rate) {
  auto s = served::scenario("input_tokens: 1024, output_tokens: 256, arrival_rate: 1",
                            "llama-3-70b", "dgx-h100", 8, "{tp: 4, dp: 2}");
  s.serving.arrival_rate = rate;
  return s;
}

}  // namespace

TEST_CASE("Clients are spread over replicas as they are") {
  const auto shares = spread(11, 4);
  REQUIRE(shares.size() == 2);
  CHECK(shares[0].replicas == 3);
  CHECK(shares[0].share == 3);
  CHECK(shares[1].replicas == 1);
  CHECK(shares[1].share == 2);
  REQUIRE(spread(3, 8).size() == 1);
  CHECK(spread(3, 8).front().replicas == 3);
  CHECK(spread(8, 8).front().replicas == 8);
  CHECK(mean_share(3, 8).busy == 3);
  CHECK(mean_share(12, 8).share == 1.5);
}

TEST_CASE("One client is served by one replica, however many there are") {
  const auto one = planned_estimate(with_clients(1, 1));
  const auto eight = planned_estimate(with_clients(1, 8));
  CHECK(eight.output_per_s == doctest::Approx(one.output_per_s));
  CHECK(eight.e2e.mean == one.e2e.mean);
  CHECK(eight.requests_per_s * eight.e2e.mean == doctest::Approx(1).epsilon(1e-9));
  CHECK(eight.busy == 1);
  const auto quick = quick_estimate(with_clients(1, 8), {1, 1, 1, 8});
  CHECK(quick.output_per_s == doctest::Approx(eight.output_per_s).epsilon(0.02));
}

TEST_CASE("Nine clients on eight replicas are two on one and one on each other") {
  const auto one = planned_estimate(with_clients(1, 1));
  const auto two = planned_estimate(with_clients(2, 1));
  const auto all = planned_estimate(with_clients(9, 8));
  CHECK(all.output_per_s == doctest::Approx(7 * one.output_per_s + two.output_per_s));
  CHECK(all.tpot.mean > one.tpot.mean);
  CHECK(all.tpot.mean < two.tpot.mean);
  CHECK(all.e2e.p95 <= two.e2e.p95);
  CHECK(all.requests_per_s * all.e2e.mean == doctest::Approx(9).epsilon(1e-9));
}

// Requests that end in waves: a client more changes little, and all are in flight for their time.
TEST_CASE("A closed load's rate is its clients over the time of a request") {
  double before = 0;
  for (const std::int64_t clients : {30, 31, 33, 36, 40, 48}) {
    auto s = served::scenario("input_tokens: 2048, output_tokens: 256, concurrency: 1",
                              "llama-3-70b", "dgx-h100", 8, "{tp: 4, dp: 1}");
    s.serving.concurrency = clients;
    const auto e = planned_estimate(s);
    CAPTURE(clients);
    CHECK(e.requests_per_s * e.e2e.mean == doctest::Approx(clients).epsilon(1e-9));
    if (before > 0) CHECK(e.output_per_s == doctest::Approx(before).epsilon(0.15));
    before = e.output_per_s;
    s.serving.requests = 40 * clients;
    CHECK(planned_estimate(s).output_per_s == doctest::Approx(e.output_per_s).epsilon(0.08));
  }
}

TEST_CASE("Stages shorten no prompt: it passes one after the other") {
  const auto prompt_of = [](int pp) {
    return served::scenario("input_tokens: 4096, output_tokens: 8, concurrency: 1", "llama-2-7b",
                            "dgx-h100", 8, "{tp: 1, pp: " + std::to_string(pp) + ", dp: 1}");
  };
  const auto first = [&](int pp, bool simulated) {
    const auto s = prompt_of(pp);
    return (simulated ? planned_estimate(s) : quick_estimate(s, {1, pp, 1, 1})).ttft.mean;
  };
  const double host = prompt_of(1).serving.engine.constants.host_step.value;
  for (const bool simulated : {true, false}) {
    const double whole = first(1, simulated);
    for (const int pp : {2, 4, 8}) {
      CAPTURE(pp);
      CHECK(first(pp, simulated) >= 0.99 * whole);
      CHECK(first(pp, simulated) <= 1.02 * whole + (pp - 1) * host);  // a step of each stage's host
    }
  }
}

TEST_CASE("A run of so many requests has no more than those") {
  auto s = served::scenario("input_tokens: 512, output_tokens: 128, requests: 3", "llama-2-7b",
                            "dgx-h100", 8, "{tp: 1, dp: 8}");
  const auto few = planned_estimate(s);
  CHECK(few.requests_per_s * few.e2e.mean == doctest::Approx(3).epsilon(0.02));
  s.serving.requests = 100;
  s.serving.concurrency = 12;
  const auto more = planned_estimate(s);
  CHECK(more.requests_per_s * more.e2e.mean <= 12.1);
}

TEST_CASE("An open load gives what arrives, and no more than the plan can answer") {
  const double capacity = planned_estimate(large(1)).capacity;
  for (const double part : {0.1, 0.5, 0.9, 1.1, 3.0, 20.0}) {
    const auto e = planned_estimate(large(part * capacity));
    CAPTURE(part);
    CHECK(e.capacity == doctest::Approx(capacity));
    CHECK(e.saturated == (part > 1));
    CHECK(e.requests_per_s == doctest::Approx(std::min(part, 1.0) * capacity));
    CHECK(e.output_per_s == doctest::Approx(e.requests_per_s * 256));
    const auto quick = quick_estimate(large(part * capacity), {4, 1, 1, 2});
    CHECK(quick.requests_per_s <= std::min(part * capacity, quick.capacity) * (1 + 1e-12));
  }
}

TEST_CASE("An open load is simulated until those in flight are few of those that came") {
  auto s = served::scenario("input_tokens: 128, output_tokens: 2000, arrival_rate: 0.8",
                            "llama-2-7b", "dgx-h100", 1, "{dp: 1}");
  const auto e = planned_estimate(s);
  REQUIRE_FALSE(e.saturated);
  CHECK(static_cast<double>(e.simulated) >= 7.9 * 0.8 * e.e2e.mean);
  s.serving.arrival_rate = 100;
  const auto full = planned_estimate(s);
  REQUIRE(full.saturated);
  CHECK(full.ttft.mean == without_end);
  CHECK(full.e2e.mean == without_end);
  CHECK(full.requests_per_s == full.capacity);
  CHECK(full.tpot.mean > e.tpot.mean);
  CHECK_FALSE(full.run);
  s.serving.requests = 1000;
  const auto run = planned_estimate(s).run;
  REQUIRE(run);
  CHECK(run->ttft.mean < 1000 / full.capacity);
  CHECK(run->output_per_s < full.output_per_s);
}

TEST_CASE("What a request takes outside the steps is in its latency and in its client's wait") {
  for (const int output : {1, 2, 16}) {
    auto s = served::scenario("input_tokens: 128, output_tokens: 1, concurrency: 1", "llama-2-7b",
                              "dgx-h100", 1, "{dp: 1}");
    s.serving.output.mean = output;
    const auto e = planned_estimate(s);
    CAPTURE(output);
    CHECK(e.ttft.mean > s.serving.engine.constants.request.value);
    CHECK(e.requests_per_s * e.e2e.mean == doctest::Approx(1).epsilon(1e-9));
    const auto quick = quick_estimate(s, {1, 1, 1, 1});
    CHECK(quick.requests_per_s * quick.e2e.mean == doctest::Approx(1).epsilon(1e-9));
  }
}

TEST_CASE("More requests at once than are simulated drain in the time that they take") {
  auto s = served::scenario("input_tokens: 100, output_tokens: 4000, requests: 1000", "llama-2-7b",
                            "dgx-h100", 1, "{dp: 1}");
  const auto all = planned_estimate(s);
  REQUIRE(all.simulated == 1000);
  s.serving.requests = 100'000;
  const auto many = planned_estimate(s);
  REQUIRE(many.simulated < 100'000);
  const double seconds = 1e5 / many.requests_per_s;
  CHECK(many.requests_per_s == doctest::Approx(all.requests_per_s).epsilon(0.1));
  CHECK(many.e2e.mean == doctest::Approx(seconds / 2).epsilon(0.05));
  CHECK(many.e2e.p95 == doctest::Approx(0.95 * seconds).epsilon(0.05));
  CHECK(many.tpot.mean == doctest::Approx(all.tpot.mean).epsilon(0.1));
}

TEST_CASE("A first token through stages comes no later with faster memory") {
  double before = 1e9;
  for (const double bandwidth : {2e12, 3e12, 4e12, 8e12}) {
    auto s = served::scenario("input_tokens: 2048, output_tokens: 128, arrival_rate: 2",
                              "deepseek-v2-lite", "dgx-a100", 4, "{tp: 1, pp: 4, dp: 1}");
    s.serving.engine.host_overlap = true;
    s.cluster.device.memory_bandwidth = BytesPerSecond(bandwidth);
    const double first = planned_estimate(s).ttft.mean;
    CAPTURE(bandwidth);
    CHECK(first <= before * 1.001);
    before = first;
  }
}
