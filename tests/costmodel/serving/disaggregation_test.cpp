#include "costmodel/serving/disaggregation.hpp"

#include <doctest/doctest.h>

#include "costmodel/cost/collective.hpp"
#include "costmodel/serving/serving_estimate.hpp"
#include "tests/costmodel/serving/support/served.hpp"

using namespace costmodel;
using doctest::Approx;

namespace {

struct Pools {
  ServingScenario s;
  PromptPool prompts;
  TokenPool tokens;
  PooledRates rates() const { return pooled_rates(s.serving, prompts, tokens); }
};

Pools pools_of(ServingScenario s, const ServingSizes& prefill, const ServingSizes& decode) {
  Pools p{std::move(s), {}, {}};
  const StepTimes first(p.s.model, p.s.cluster, p.s.serving, prefill);
  const StepTimes second(p.s.model, p.s.cluster, p.s.serving, decode);
  p.prompts = prompt_pool(p.s, prefill, first);
  p.tokens = token_pool(p.s, decode, second);
  return p;
}

}  // namespace

TEST_CASE("All keys and values of a prompt travel, whatever tp and pp are") {
  // Llama 2 7B: 32 layers, 2 x 4096 columns in 2 bytes, 512 tokens.
  const double bytes = 32.0 * 2 * 4096 * 2 * 512;
  for (const ServingSizes& sizes :
       {ServingSizes{1, 1, 1, 1}, ServingSizes{4, 1, 1, 1}, ServingSizes{2, 2, 1, 1}})
    CHECK(pools_of(served::usual(), sizes, sizes).prompts.sent.value == Approx(bytes));
}

TEST_CASE("Instances multiply the rate, and a slow network bounds it") {
  const auto one = pools_of(served::usual(), {1, 1, 1, 1}, {1, 1, 1, 1});
  const auto three = pools_of(served::usual(), {1, 1, 1, 3}, {1, 1, 1, 1});
  CHECK(three.prompts.rate == Approx(3 * one.prompts.rate));
  CHECK(one.prompts.rate == Approx(1 / one.prompts.prompt.value));
  auto slow = served::usual();
  for (Tier& tier : slow.cluster.tiers) tier.bandwidth = BytesPerSecond(1e8);
  const auto bound = pools_of(slow, {1, 1, 1, 1}, {1, 1, 1, 1});
  CHECK(bound.prompts.sending > bound.prompts.prompt);
  CHECK(bound.prompts.rate == Approx(1 / bound.prompts.sending.value));
  CHECK(bound.rates().capacity <= bound.prompts.rate);
}

TEST_CASE("In flight are those that wait, prefill and decode: Little's law") {
  for (const int prompts : {1, 4}) {
    const auto p = pools_of(served::usual(), {1, 1, 1, prompts}, {1, 1, 1, 2});
    const PooledRates r = p.rates();
    CHECK(r.capacity <= p.prompts.rate);
    CHECK(r.capacity <= p.tokens.rate);
    CHECK(r.rate * r.e2e.value == Approx(32));
    CHECK(r.ttft >= p.prompts.prompt + transfer_of(p.prompts, p.tokens));
  }
}

TEST_CASE("Of requests at once the last prompt decodes last") {
  auto s = served::usual();
  s.serving.concurrency = 0;
  s.serving.requests = 200;
  const auto p = pools_of(s, {1, 1, 1, 1}, {1, 1, 1, 1});
  const PooledRates r = p.rates();
  CHECK(200 / r.rate >= 200 / p.prompts.rate);
  CHECK(200 / r.rate >= 200 / p.tokens.rate);
  const Seconds first = s.serving.engine.constants.request + way_in(p.prompts, p.tokens).delay;
  CHECK((r.ttft - first - r.tpot).value == Approx(100 / p.prompts.rate));
}

TEST_CASE("Of an open load prompts wait as in M/D/1, and beyond the capacity it is saturated") {
  auto s = served::usual();
  s.serving.concurrency = 0;
  s.serving.arrival_rate = 1;
  auto p = pools_of(s, {1, 1, 1, 1}, {1, 1, 1, 2});
  const double load = 1 / p.prompts.rate;
  const double wait = p.prompts.prompt.value * load / (2 * (1 - load));
  p.s.serving.arrival_rate = 1e-6;  // nobody waits
  const Seconds alone = p.rates().ttft;
  p.s.serving.arrival_rate = 1;
  CHECK((p.rates().ttft - alone).value == Approx(wait));
  p.s.serving.arrival_rate = 1e5;
  CHECK(p.rates().saturated);
  CHECK(p.rates().rate == p.rates().capacity);
}

TEST_CASE("Prompts wait for those of all replicas, however many decode them") {
  auto s = served::usual();
  s.serving.concurrency = 0;
  const double full = pools_of(s, {1, 1, 1, 1}, {1, 1, 1, 1}).prompts.rate;
  s.serving.arrival_rate = 0.8 * full;
  const auto first_token = [&](int replicas) {
    s.plan.disaggregation = Disaggregation{{1, 1, 1, 1}, {1, 1, 1, replicas}};
    return planned_estimate(s).ttft.mean;
  };
  const double two = first_token(2);
  for (const int replicas : {3, 4}) CHECK(first_token(replicas) == Approx(two).epsilon(0.15));
  // The service and the wait of M/D/1 at 0.8 of the rate: 1 + 0.8 / (2 * 0.2).
  CHECK(two == Approx(3 / full).epsilon(0.2));
}

TEST_CASE("A pool that holds no request does not fit") {
  const auto large =
      served::scenario("input_tokens: 512, output_tokens: 128, concurrency: 4", "llama-3.1-405b");
  const auto p = pools_of(large, {1, 1, 1, 1}, {1, 1, 1, 1});
  CHECK_FALSE(p.prompts.fits);
  CHECK_FALSE(p.tokens.fits);
}

TEST_CASE("Of an open load as many decode as keep up with it") {
  auto s = served::usual();
  s.serving.concurrency = 0;
  s.serving.arrival_rate = 2;
  const auto calm = pools_of(s, {1, 1, 1, 1}, {1, 1, 1, 2});
  CHECK(calm.tokens.state.requests_per_s * 2 == Approx(2).epsilon(1e-3));
  CHECK(calm.tokens.state.running < 5);
  s.serving.arrival_rate = 1e6;
  const auto full = pools_of(s, {1, 1, 1, 1}, {1, 1, 1, 2});
  CHECK(full.tokens.rate == Approx(calm.tokens.rate));
  CHECK(full.tokens.state.tpot > calm.tokens.state.tpot);
}
