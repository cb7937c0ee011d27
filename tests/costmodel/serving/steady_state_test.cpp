#include "costmodel/serving/steady_state.hpp"

#include <doctest/doctest.h>

#include "costmodel/serving/serving_estimate.hpp"
#include "tests/costmodel/serving/support/served.hpp"

using namespace costmodel;

namespace {
SteadyState state_of(const ServingScenario& s, double in_flight) {
  const auto sizes = sizes_of(s);
  const StepTimes times(s.model, s.cluster, s.serving, sizes);
  return steady_state(times, s.serving, serving_memory(s, sizes), in_flight);
}
}  // namespace

TEST_CASE("In flight are rate times latency, and more in flight are never fewer tokens") {
  const auto s = served::usual();
  double before = 0;
  for (const double n : {1.0, 4.0, 16.0, 64.0, 200.0}) {
    const SteadyState state = state_of(s, n);
    CHECK(state.requests_per_s * state.e2e.value == doctest::Approx(n));
    CHECK(state.output_per_s == doctest::Approx(state.requests_per_s * 128));
    CHECK(state.output_per_s >= before);
    before = state.output_per_s;
  }
}

TEST_CASE("The closed form is what the simulation of requests comes to") {
  for (const char* chunked : {"true", "false"}) {
    const auto s = served::scenario(
        std::string("input_tokens: {min: 300, max: 700}, output_tokens: {min: 60, max: 196}, "
                    "concurrency: 48, chunked_prefill: ") +
            chunked,
        "llama-2-7b", "dgx-h100", 1, "{dp: 1}");
    const auto simulated = serving_estimate(s, sizes_of(s));
    const SteadyState state = state_of(s, 48);
    CAPTURE(chunked);
    CHECK(simulated.requests_per_s == doctest::Approx(state.requests_per_s).epsilon(0.12));
    CHECK(simulated.tpot.mean == doctest::Approx(state.tpot.value).epsilon(0.2));
  }
}

TEST_CASE("A first token takes its prompt's steps beside the decoding of others") {
  for (const char* load :
       {"input_tokens: 512, output_tokens: 128", "input_tokens: 20000, output_tokens: 300",
        "input_tokens: {min: 300, max: 700}, output_tokens: {min: 60, max: 196}"}) {
    for (const char* limits : {"chunked_prefill: true, max_num_batched_tokens: 8192",
                               "chunked_prefill: true, max_num_batched_tokens: 512",
                               "chunked_prefill: false, max_num_batched_tokens: 32768"}) {
      for (const double n : {1.0, 8.0, 32.0}) {
        auto s = served::scenario(std::string(load) + ", concurrency: 1, " + limits, "llama-3-70b",
                                  "dgx-h100", 8, "{tp: 8, dp: 1}");
        s.serving.concurrency = static_cast<std::int64_t>(n);
        const auto simulated = serving_estimate(s, sizes_of(s));
        const SteadyState state = state_of(s, n);
        CAPTURE(load);
        CAPTURE(limits);
        CAPTURE(n);
        CHECK(state.ttft.value == doctest::Approx(simulated.ttft.mean).epsilon(0.3));
        CHECK(state.ttft >= state.prompt * 0.9);
        CHECK(state.tpot.value == doctest::Approx(simulated.tpot.mean).epsilon(0.1));
        CHECK(state.requests_per_s == doctest::Approx(simulated.requests_per_s).epsilon(0.08));
      }
    }
  }
}

TEST_CASE("A batch turns to arithmetic where its products outgrow weights and cache") {
  const auto turning = [](const char* lengths) {
    const auto s = served::scenario(std::string(lengths) + ", requests: 1");
    const StepTimes times(s.model, s.cluster, s.serving, sizes_of(s));
    const double n = turning_batch(times, s.serving);
    if (n > 1) {
      const StepParts at = times.of(decode_load(s.serving, n));
      const StepParts below = times.of(decode_load(s.serving, n - 1));
      CHECK(at.arithmetic > at.reading);
      CHECK(below.arithmetic <= below.reading);
    }
    return n;
  };
  CHECK(turning("input_tokens: 1, output_tokens: 2") > 100);
  CHECK(turning("input_tokens: 4000, output_tokens: 500") == 0);  // each reads its own keys
}

TEST_CASE("A unit that decodes alone has no prompts beside its tokens, in both witnesses") {
  const auto s =
      served::scenario("input_tokens: 512, output_tokens: 128, concurrency: 32, decode_only: true",
                       "llama-2-7b", "dgx-h100", 1, "{dp: 1}");
  const auto simulated = serving_estimate(s, sizes_of(s));
  const SteadyState state = state_of(s, 32);
  CHECK(state.prompt.value == 0);
  CHECK(simulated.stalled.value < 0.02 * simulated.tpot.mean);
  CHECK(simulated.tpot.mean == doctest::Approx(state.tpot.value).epsilon(0.03));
  CHECK(simulated.output_per_s == doctest::Approx(state.output_per_s).epsilon(0.05));
}
