#include "costmodel/serving/serving_memory.hpp"

#include <doctest/doctest.h>

#include "tests/costmodel/serving/support/served.hpp"

using namespace costmodel;

namespace {
ServingMemory memory_of(const ServingScenario& s) {
  return serving_memory(s.model, s.cluster, s.serving, sizes_of(s));
}
}  // namespace

TEST_CASE("Cached bytes of a token are exact") {
  const auto model = [](const char* name) {
    return served::scenario("input_tokens: 8, output_tokens: 8, requests: 1", name).model;
  };
  // 2 x heads x head_dim x 2 bytes; of grouped heads tp leaves one at least.
  CHECK(cache_bytes_per_layer(model("llama-2-7b"), 1, CacheFormat::bf16).value == 2 * 32 * 128 * 2);
  CHECK(cache_bytes_per_layer(model("llama-2-7b"), 4, CacheFormat::fp8).value == 2 * 8 * 128);
  CHECK(cache_bytes_per_layer(model("llama-2-70b"), 8, CacheFormat::bf16).value == 2 * 1 * 128 * 2);
  CHECK(cache_bytes_per_layer(model("llama-2-70b"), 16, CacheFormat::bf16).value ==
        2 * 1 * 128 * 2);
  // DeepSeek-V3: 512 latent columns and 64 of the rotary key, on every rank.
  CHECK(cache_bytes_per_layer(model("deepseek-v3"), 1, CacheFormat::bf16).value == 576 * 2);
  CHECK(cache_bytes_per_layer(model("deepseek-v3"), 8, CacheFormat::bf16).value == 576 * 2);
}

TEST_CASE("The cache takes what is left, in whole blocks") {
  const auto s = served::usual();
  const ServingMemory m = memory_of(s);
  CHECK(m.weights.value == doctest::Approx(6.738e9 * 2).epsilon(0.001));
  CHECK(m.usable.value == doctest::Approx(m.device.value * 0.9));
  CHECK((m.weights + m.activations + m.context + m.cache).value == doctest::Approx(m.usable.value));
  CHECK(m.token.value == 32 * 2 * 32 * 128 * 2);
  CHECK(m.tokens == m.blocks * 16);
  CHECK(m.tokens * m.token.value <= m.cache.value);
  CHECK(requests_held(m, s.serving) == doctest::Approx(m.tokens / 640));
}

TEST_CASE("More tensor ranks, and weights of fewer bits, never take more memory") {
  double before = 1e30;
  for (const int tp : {1, 2, 4, 8}) {
    const auto s = served::usual("{dp: 1, tp: " + std::to_string(tp) + "}");
    const ServingMemory m = memory_of(s);
    CHECK(m.weights.value < before);
    CHECK(m.fits());
    before = m.weights.value;
  }
  const auto model = served::usual().model;
  before = 1e30;
  for (const auto f : {WeightFormat::bf16, WeightFormat::fp8, WeightFormat::nvfp4}) {
    const double held = weights_held(model, f, {}).value;
    CHECK(held < before);
    before = held;
  }
}

TEST_CASE("A stage holds its layers alone, and offloaded weights make room") {
  const auto model = served::usual().model;
  CHECK(weights_held(model, WeightFormat::bf16, {1, 2, 1, 1}).value <
        0.52 * weights_held(model, WeightFormat::bf16, {}).value);
  const auto s = served::usual();
  auto offloaded = s;
  offloaded.serving.cpu_offload = Bytes(4e9);
  CHECK((memory_of(offloaded).cache - memory_of(s).cache).value == doctest::Approx(4e9));
}

TEST_CASE("A model that is too large leaves no cache") {
  const auto s = served::scenario("input_tokens: 8, output_tokens: 8, requests: 1", "deepseek-v3");
  CHECK_FALSE(memory_of(s).fits());
}
