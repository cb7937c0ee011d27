#include "costmodel/serving/serving_estimate.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/costmodel/serving/support/served.hpp"

using namespace costmodel;
using doctest::Contains;

TEST_CASE("Replicas share the load and add up") {
  const auto one = planned_estimate(served::usual("{tp: 1, dp: 1}"));
  auto s = served::usual("{tp: 1, dp: 4}");
  s.serving.concurrency = 128;
  const auto four = planned_estimate(s);
  CHECK(four.output_per_s == doctest::Approx(4 * one.output_per_s));
  CHECK(four.tpot.mean == one.tpot.mean);
  CHECK(four.per_device() == doctest::Approx(one.per_device()));
}

TEST_CASE("A token's parts and the waiting for prompts are its time") {
  const auto e = planned_estimate(served::usual());
  CHECK((e.token.total() + e.stalled).value == doctest::Approx(e.tpot.mean).epsilon(1e-12));
  CHECK(e.pass.value < e.tpot.mean);
  CHECK(e.ttft.p95 >= e.ttft.mean * 0.5);
  CHECK(e.fits);
}

TEST_CASE("An open load above the capacity is told; below it every request is answered") {
  auto s = served::scenario("input_tokens: 512, output_tokens: 128, arrival_rate: 2", "llama-2-7b",
                            "dgx-h100", 1, "{dp: 1}");
  const auto calm = planned_estimate(s);
  CHECK_FALSE(calm.saturated);
  CHECK(calm.requests_per_s == doctest::Approx(2).epsilon(0.15));
  s.serving.arrival_rate = calm.capacity * 3;
  const auto flooded = planned_estimate(s);
  CHECK(flooded.saturated);
  CHECK(flooded.ttft.mean == without_end);
  CHECK(flooded.tpot.mean > calm.tpot.mean);
}

TEST_CASE("Far more requests in flight than run wait in line by Little's law") {
  auto s = served::usual("{tp: 1, dp: 2}");
  s.serving.concurrency = 1'000'000;
  const auto e = planned_estimate(s);
  CHECK(e.requests_per_s * e.e2e.mean == doctest::Approx(1e6).epsilon(0.02));
  const double decoding = e.tpot.mean * (s.serving.output.mean - 1);
  CHECK(e.ttft.mean + decoding == doctest::Approx(e.e2e.mean).epsilon(0.02));
  auto fewer = s;
  fewer.serving.concurrency = 8 * s.serving.limits.max_num_seqs;
  CHECK(e.requests_per_s == doctest::Approx(planned_estimate(fewer).requests_per_s));
}

TEST_CASE("What no cache holds and what no hardware can is refused with its place") {
  const auto longest = served::scenario("input_tokens: 500000, output_tokens: 10, requests: 1");
  CHECK_THROWS_WITH_AS(planned_estimate(longest), Contains("served.yaml:4:"), ConfigError);
  CHECK_THROWS_WITH_AS(planned_estimate(longest), Contains("one request has 500,010"), ConfigError);
  const auto fast = served::scenario(
      "input_tokens: 8, output_tokens: 8, requests: 1, latency_bound: {tpot_s: 0.1 ms}");
  CHECK_THROWS_WITH_AS(planned_estimate(fast), Contains("is below one pass"), ConfigError);
}

TEST_CASE("A model that does not fit is an answer, not an error") {
  const auto s = served::scenario("input_tokens: 8, output_tokens: 8, requests: 1", "llama-2-70b",
                                  "dgx-h100", 1, "{dp: 1}");
  const auto e = planned_estimate(s);
  CHECK_FALSE(e.fits);
  CHECK(e.output_per_s == 0);
}

TEST_CASE("A price an hour becomes one of a million tokens") {
  auto s = served::usual("{tp: 1, dp: 2}");
  s.cluster.operation.usd_per_device_hour = 3.6;
  const auto e = planned_estimate(s);
  CHECK(e.usd_per_hour == doctest::Approx(7.2));
  CHECK(e.usd_per_million_output == doctest::Approx(7.2 / 3600 / e.output_per_s * 1e6));
}

TEST_CASE("Prompts on devices of their own: the slower of both bounds the rate") {
  auto s = served::usual("{disaggregation: {prefill: {tp: 1, dp: 2}, decode: {tp: 1, dp: 4}}}");
  s.serving.concurrency = 0;
  s.serving.arrival_rate = 4;
  const auto e = planned_estimate(s);
  REQUIRE(e.fits);
  CHECK(e.transfer.value > 0);
  CHECK(e.ttft.mean > e.prompt.value + e.transfer.value);
  CHECK(e.ttft.p95 > e.ttft.mean);  // prompts come at random, as those of other plans do
  CHECK_FALSE(e.saturated);
  s.serving.arrival_rate = 1e4;
  const auto full = planned_estimate(s);
  CHECK(full.saturated);
  CHECK(full.requests_per_s == full.capacity);
  CHECK(std::isfinite(full.tpot.mean));
}

TEST_CASE("Devices for prompts are either counted or not") {
  auto s = served::usual("{disaggregation: {prefill: {tp: 1, dp: 2}, decode: {tp: 1, dp: 4}}}");
  s.serving.decode_only = true;
  CHECK_THROWS_WITH_AS(planned_estimate(s), doctest::Contains("decode_only"), ConfigError);
}

TEST_CASE("Prompts of a closed load come to both kinds of plan by one clock") {
  auto s = served::usual("{disaggregation: {prefill: {tp: 1, dp: 1}, decode: {tp: 1, dp: 2}}}");
  s.serving.requests = 32;  // all start at once
  const auto e = planned_estimate(s);
  CHECK(e.simulated == 16);
  // The pool takes one prompt after the other: on average half of them are before one.
  CHECK(e.ttft.mean > e.prompt.value * 32 / 2 * 0.9);
  s.serving.requests = 0;
  const auto quick = disaggregated_estimate(s, false);
  const auto closed = planned_estimate(s);
  CHECK(closed.requests_per_s * closed.e2e.mean == doctest::Approx(32).epsilon(1e-9));
  CHECK(quick.output_per_s == doctest::Approx(closed.output_per_s).epsilon(0.1));
}

TEST_CASE("As many requests as are in flight are one wave, and no straggler follows") {
  auto s = served::usual();
  s.serving.requests = s.serving.concurrency;
  const auto e = planned_estimate(s);
  const auto quick = quick_estimate(s, sizes_of(s));
  CHECK(e.output_per_s == doctest::Approx(quick.output_per_s).epsilon(0.15));
}

TEST_CASE("The quick estimate keeps near the simulated one") {
  const auto s = served::usual();
  const auto quick = quick_estimate(s, sizes_of(s));
  const auto whole = serving_estimate(s, sizes_of(s));
  CHECK(quick.output_per_s == doctest::Approx(whole.output_per_s).epsilon(0.2));
}
