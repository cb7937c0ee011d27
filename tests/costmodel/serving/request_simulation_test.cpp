#include "costmodel/serving/request_simulation.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace costmodel;

namespace {

StepClock constant(double seconds) {
  return [seconds](const StepLoad&) {
    StepParts parts;
    parts.products = Seconds(seconds);
    return parts;
  };
}

ReplicaLimits limits_of(std::int64_t seqs, double blocks, std::int64_t concurrency = 0) {
  ReplicaLimits limits;
  limits.serving.max_num_seqs = seqs;
  limits.serving.max_num_batched_tokens = 1'000'000;
  limits.blocks = blocks;
  limits.concurrency = concurrency;
  return limits;
}

}  // namespace

TEST_CASE("The same requests are drawn each time, with the lengths' mean and percentile") {
  const LengthSpec input{.mean = 500, .p95 = 1500}, output{.mean = 150, .least = 100, .most = 200};
  const auto a = drawn_requests(input, output, 4, 20'000), b = drawn_requests(input, output, 4, 10);
  double sum = 0, above = 0;
  for (const auto& r : a) {
    sum += r.input;
    above += r.input > 1500 ? 1 : 0;
    CHECK(r.output >= 100);
    CHECK(r.output <= 200);
  }
  CHECK(sum / 20'000 == doctest::Approx(500).epsilon(0.03));
  CHECK(above / 20'000 == doctest::Approx(0.05).epsilon(0.1));
  CHECK(a.back().arrival == doctest::Approx(5000).epsilon(0.03));
  CHECK(a[9].arrival == b[9].arrival);
}

TEST_CASE("One request at a time with Poisson arrivals waits as M/D/1 says") {
  const double service = 0.01;
  for (const double load : {0.3, 0.6, 0.8}) {
    const auto requests = drawn_requests({.mean = 1}, {.mean = 1}, load / service, 40'000);
    const ServedRun run = serve(requests, limits_of(1, 1e9), constant(service));
    // Pollaczek and Khinchine, with the service itself.
    const double expected = service * (1 + load / (2 * (1 - load)));
    CAPTURE(load);
    CHECK(run.ttft.mean == doctest::Approx(expected).epsilon(0.06));
  }
}

TEST_CASE("Little's law holds between throughput, latency and requests in flight") {
  const auto requests = drawn_requests({.mean = 64}, {.mean = 50, .least = 20, .most = 80}, 0, 800);
  const ServedRun run = serve(requests, limits_of(64, 1e9, 16), constant(0.01));
  CHECK(run.requests_per_s * run.e2e.mean == doctest::Approx(16).epsilon(0.03));
  CHECK(run.running == doctest::Approx(16).epsilon(0.05));
}

TEST_CASE("Start and end of a run count for a benchmark of so many requests alone") {
  // 40 waves of 10 steps for 16 requests, of which the last has one.
  const auto requests = drawn_requests({.mean = 64}, {.mean = 10}, 0, 39 * 16 + 1);
  ReplicaLimits limits = limits_of(64, 1e9, 16);
  CHECK(serve(requests, limits, constant(0.01)).running == doctest::Approx(16));
  limits.full_run = true;
  CHECK(serve(requests, limits, constant(0.01)).running == doctest::Approx((39 * 16 + 1) / 40.0));
}

TEST_CASE("Each request has its tokens, one a step after the prompt's") {
  auto limits = limits_of(8, 1e9);
  limits.full_run = true;
  const std::vector<ServedRequest> requests(4, {0, 100, 10});
  const ServedRun run = serve(requests, limits, constant(0.5));
  CHECK(run.steps == 10);
  CHECK(run.ttft.mean == 0.5);
  CHECK(run.tpot.mean == 0.5);
  CHECK(run.e2e.mean == 5);
  CHECK(run.output_per_s == 8);
  CHECK(run.total_per_s == 88);
}

TEST_CASE("What a prompt takes through the stages delays its request and no round") {
  const auto passing = [](double seconds) {
    return [seconds](const StepLoad&) {
      StepParts parts;
      parts.products = Seconds(1);
      parts.passing = Seconds(seconds);
      return parts;
    };
  };
  auto limits = limits_of(8, 1e9, 2);
  limits.full_run = true;
  const std::vector<ServedRequest> requests(6, {0, 100, 2});
  for (const double late : {0.0, 0.01, 0.5}) {
    CAPTURE(late);
    const ServedRun run = serve(requests, limits, passing(late));
    CHECK(run.steps == 6);
    CHECK(run.ttft.mean == doctest::Approx(1 + late));
    CHECK(run.tpot.mean == doctest::Approx(1));
    // Each of two clients asks three times.
    CHECK(run.seconds == doctest::Approx(3 * (2 + late)));
    CHECK(run.requests_per_s * run.e2e.mean == doctest::Approx(2));
  }
}

TEST_CASE("A chunk takes what the budget leaves beside decoding; whole prompts interrupt it") {
  auto limits = limits_of(8, 1e9);
  limits.serving.max_num_batched_tokens = 50;
  const std::vector<ServedRequest> requests{{0, 100, 3}};
  CHECK(serve(requests, limits, constant(1)).steps == 4);
  limits.serving.chunked_prefill = false;
  CHECK(serve(requests, limits, constant(1)).steps == 3);
  limits.prefix_hit_share = 0.5;
  limits.serving.chunked_prefill = true;
  CHECK(serve(requests, limits, constant(1)).steps == 3);
}

TEST_CASE("What is admitted has room for its first token, also where prompts fill their blocks") {
  auto limits = limits_of(8, 5);               // of 16 tokens, two for each request
  limits.serving.max_num_batched_tokens = 16;  // a prompt a step
  limits.serving.chunked_prefill = false;
  const ServedRun run = serve(std::vector<ServedRequest>(9, {0, 16, 3}), limits, constant(1));
  CHECK(run.preempted == 0);
}

TEST_CASE("The pace is that of the same requests, whatever waves they come in") {
  // A second for each token of a prompt, and for each step of answers.
  const auto clock = [](const StepLoad& load) {
    StepParts parts;
    parts.products = Seconds(load.prefill_tokens > 0 ? load.prefill_tokens : 1);
    return parts;
  };
  for (const std::int64_t seqs : {1, 3, 8, 40}) {
    CAPTURE(seqs);
    auto limits = limits_of(seqs, 1e9);
    limits.serving.chunked_prefill = false;
    limits.serving.max_num_batched_tokens = 64;
    const std::vector<ServedRequest> requests(120, {0, 10, 5});
    const auto n = static_cast<double>(seqs);
    CHECK(serve(requests, limits, clock).pace == doctest::Approx(n / (10 * n + 4)));
  }
}

TEST_CASE("A full cache lets requests wait, or puts the latest back") {
  const std::vector<ServedRequest> requests(6, {0, 16, 33});
  auto limits = limits_of(8, 9);  // three whole requests of 49 tokens have 12 blocks
  const ServedRun shared = serve(requests, limits, constant(1));
  CHECK(shared.preempted > 0);
  limits.reserves_output = true;
  const ServedRun reserved = serve(requests, limits, constant(1));
  CHECK(reserved.preempted == 0);
  CHECK(reserved.steps == 3 * 33);
}

TEST_CASE("Those that start a run together are not among those that are measured") {
  auto limits = limits_of(16, 1e9, 16);
  limits.serving.max_num_batched_tokens = 100;
  const auto requests = drawn_requests({.mean = 90}, {.mean = 50, .least = 20, .most = 80}, 0, 64);
  const ServedRun steady = serve(requests, limits, constant(1));
  CHECK(steady.ttft.mean < 3);
  limits.full_run = true;
  CHECK(serve(requests, limits, constant(1)).ttft.mean > 3);
}

TEST_CASE("The percentile is one of the values") {
  CHECK(latency_of({4, 1, 3, 2}).p95 == 4);
  CHECK(latency_of({}).mean == 0);
}
