#include "costmodel/serving/serving_memory.hpp"

#include <doctest/doctest.h>

#include <fmt/format.h>
#include <algorithm>
#include <string>

#include "tests/costmodel/serving/support/served.hpp"

using namespace costmodel;

namespace {
ServingMemory memory_of(const ServingScenario& s) { return serving_memory(s, sizes_of(s)); }
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

namespace {

// A row of an engine's start-up log: GiB of weights and tokens of the cache; 0: not in the log.
struct LoggedStart {
  const char* name;
  const char* model;
  const char* cluster;
  const char* serving;
  int tp, pp;
  double weights_gib, tokens;
};

// vLLM 0.19 on H100s of 79.19 GiB at 0.95, the ranks that bind: llm-d-incubation/llm-d-planner@
// d3121e059d:accuracy/results/v0.19.0/logs; 0.11 at 0.9: docs/empirical-vllm-memory-results.md
// there; and issues of vllm-project/vllm. m14's checkpoint is the first release's, whose keys and
// values have 16 heads.
constexpr auto h100 = "dgx-h100", rtx = "pcie-8x-rtx-4090";
constexpr auto v17 = "stack: vllm-0.17, gpu_memory_utilization: 0.95";
constexpr auto v17_fp8_cache = "stack: vllm-0.17, gpu_memory_utilization: 0.95, kv_cache: fp8";
constexpr auto v17_fp8 = "stack: vllm-0.17, gpu_memory_utilization: 0.95, weights: fp8";
constexpr auto v11 = "stack: vllm-0.11, gpu_memory_utilization: 0.9";
constexpr LoggedStart logged_starts[]{
    {"m1", "llama-3.1-8b", h100, v17, 1, 1, 14.99, 476'016},
    {"m2", "llama-3.1-8b", h100, v17_fp8_cache, 1, 1, 14.99, 952'032},
    {"m3", "llama-3.1-8b", h100, v17, 2, 1, 7.51, 1'044'688},
    {"m4", "llama-3.1-8b", h100, v17, 4, 1, 3.77, 2'209'792},
    {"m5", "llama-3.1-8b", h100, v17, 1, 2, 7.51, 1'075'312},
    {"m6", "llama-3.1-8b", h100, v17, 1, 4, 4.26, 2'257'264},
    {"m7", "qwen2-7b", h100, v17, 1, 1, 14.25, 1'096'000},
    {"m8", "qwen2-7b", h100, v17_fp8_cache, 1, 1, 14.25, 2'192'000},
    {"m9", "qwen2-7b", h100, v17, 4, 1, 3.55, 5'043'280},
    {"m10", "mixtral-8x7b", h100, v17, 2, 1, 43.51, 465'936},
    {"qwen3-8b", "qwen3-8b", h100, v17, 1, 1, 15.27, 418'688},
    {"qwen3-30b-a3b", "qwen3-30b-a3b", h100, v17, 1, 1, 56.88, 168'288},
    {"deepseek-v2-lite", "deepseek-v2-lite", h100, v17, 1, 1, 29.43, 1'505'552},
    {"qwen2.5-72b tp 4", "qwen2.5-72b", h100, v17, 4, 1, 34.01, 481'296},
    {"70b fp8 tp 2", "llama-3.1-70b", h100, v17_fp8, 2, 1, 33.88, 244'304},
    {"8b fp8", "llama-3.1-8b", h100, v17_fp8, 1, 1, 8.49, 529'248},
    {"0.11 8b", "llama-3.1-8b", h100, v11, 1, 1, 14.99, 51.38 * (1 << 30) / 131'072},
    {"0.11 32b", "qwen3-32b", h100, v11, 1, 1, 61.03, 4.45 * (1 << 30) / 262'144},
    {"0.11 32b tp 2", "qwen3-32b", h100, v11, 2, 1, 30.59, 34.49 * (1 << 30) / 131'072},
    {"m12: #12569, before 0.7", "llama-3.1-70b", h100,
     "stack: vllm-0.6, gpu_memory_utilization: 0.98, weights: int8, chunked_prefill: true, "
     "max_num_batched_tokens: 512",
     1, 1, 67.72, 22'096},
    {"m13: #13061", "qwen2.5-14b", rtx, "stack: vllm-0.7, gpu_memory_utilization: 0.98", 2, 1,
     13.95, 81'536},
    {"m14: #6746", "{base: llama-3.1-405b, kv_heads: 16}", h100, "stack: vllm-0.5, weights: fp8", 8,
     1, 57.75, 79'392},
    {"#10511", "llama-3-8b", h100, "stack: vllm-0.6", 1, 1, 14.96, 53.29 * (1 << 30) / 131'072},
    {"SGLang: #21348", "qwen3-235b-a22b", h100,
     "stack: sglang-0.5, gpu_memory_utilization: 0.93, weights: fp8", 4, 1, 0, 367'404},
};

ServingScenario started(const LoggedStart& l) {
  const std::string text = fmt::format(
      "workload: inference\nmodel: {}\ncluster: {{base: {}, devices: {}}}\nserving: {{{}, "
      "max_model_len: auto, input_tokens: 512, output_tokens: 64, concurrency: 1}}\nplan: {{tp: "
      "{}, pp: {}, dp: 1}}\n",
      l.model, l.cluster, l.tp * l.pp, l.serving, l.tp, l.pp);
  return read_serving(parse_yaml(text, "started.yaml"), "started", config_path({}));
}

}  // namespace

TEST_CASE("Weights and cache are those of engines' logs") {
  for (const LoggedStart& l : logged_starts) {
    CAPTURE(l.name);
    const ServingMemory m = memory_of(started(l));
    if (l.weights_gib > 0)
      CHECK(m.weights.value / (1 << 30) == doctest::Approx(l.weights_gib).epsilon(0.01));
    if (l.tokens > 0) CHECK(m.tokens == doctest::Approx(l.tokens).epsilon(0.05));
  }
}

TEST_CASE("A start that its log refuses for the model's own length is refused") {
  for (const char* name : {"m13: #13061", "m14: #6746"}) {
    CAPTURE(name);
    const auto* log = std::ranges::find(logged_starts, std::string(name),
                                        [](const LoggedStart& l) { return std::string(l.name); });
    REQUIRE(log != std::end(logged_starts));
    auto s = started(*log);
    CHECK(memory_of(s).fits());
    s.serving.max_model_len = 131'072;  // of both, and more than the tokens of the log
    CHECK(log->tokens < 131'072);
    CHECK_FALSE(memory_of(s).fits());
  }
}

// accuracy/accuracy_report.md of that repository (875a4fd609) has GiB of the cache that its own
// parts and its logs' tokens contradict, with tensor parallelism by 4 to 14 %: no prediction meets
// both.
TEST_CASE("A log's tokens are what its own parts leave, and a report of it states less") {
  struct Row {
    const char* name;
    double weights, activations, engine, reported;  // GiB
  };
  for (const Row& row :
       {Row{"m1", 14.99, 1.89, 0.25, 58.11}, Row{"m3", 7.51, 1.89, 2.07, 61.43},
        Row{"m4", 3.77, 1.89, 2.13, 63.98}, Row{"m7", 14.25, 2.21, 0.24, 58.53},
        Row{"m9", 3.55, 2.21, 2.13, 63.90}, Row{"m10", 43.50, 1.21, 2.08, 24.40}}) {
    CAPTURE(row.name);
    const auto* log = std::ranges::find(logged_starts, std::string(row.name),
                                        [](const LoggedStart& l) { return std::string(l.name); });
    REQUIRE(log != std::end(logged_starts));
    const double tokens = log->tokens * memory_of(started(*log)).token.value / (1 << 30);
    CHECK(0.95 * 79.19 - row.weights - row.activations - row.engine ==
          doctest::Approx(tokens).epsilon(0.003));
    const bool cut = log->tp > 1;
    CHECK((row.reported < 0.965 * tokens) == cut);
    if (!cut) CHECK(row.reported == doctest::Approx(tokens).epsilon(0.002));
  }
}

TEST_CASE("Each engine's fraction is of what its documentation names") {
  const auto memory = [](const char* model, const char* cluster, const char* serving, int tp) {
    return memory_of(started({"", model, cluster, serving, tp, 1, 0, 0}));
  };
  // SGLang: of weights and cache; what else there is lives in the rest.
  const ServingMemory pool = memory("llama-3.1-8b", h100, "stack: sglang-0.5", 1);
  CHECK((pool.weights + pool.cache).value ==
        doctest::Approx(0.88 * (pool.device - pool.context).value));
  // TensorRT-LLM: of what weights, activations and engine leave; DeepSeek-V3 on four B200 fits.
  const ServingMemory rest =
      memory("deepseek-v3", "dgx-b200", "stack: tensorrt-llm-1.2, kv_cache: fp8", 4);
  const Bytes held = rest.weights + rest.activations + rest.context;
  CHECK(rest.cache.value == doctest::Approx(0.9 * (rest.device - held).value));
  CHECK(rest.fits());
  // vLLM: of all; and what does not fit leaves nothing, not less.
  const ServingMemory none =
      memory("llama-3.1-8b", h100, "stack: vllm-0.9, gpu_memory_utilization: 0.05", 1);
  CHECK(none.cache.value == 0);
  CHECK_FALSE(none.fits());
}

TEST_CASE("vLLM does not start without room for a request of max_model_len") {
  const auto memory = [](const std::string& serving) {
    const std::string text =
        "workload: inference\nmodel: llama-3.1-8b\ncluster: {base: pcie-8x-rtx-4090, devices: 1}\n"
        "serving: {" +
        serving + ", input_tokens: 512, output_tokens: 64, concurrency: 1}\nplan: {tp: 1}\n";
    return memory_of(read_serving(parse_yaml(text, "f.yaml"), "f", config_path({})));
  };
  const ServingMemory model = memory("stack: vllm-0.9");
  CHECK(model.longest == 131'072);
  CHECK(model.tokens > 30'000);
  CHECK_FALSE(model.fits());
  CHECK(memory("stack: vllm-0.9, max_model_len: 16k").fits());
  CHECK(memory("stack: vllm-0.9, max_model_len: auto").longest == 576);
  CHECK(memory("stack: sglang-0.5").fits());
  CHECK_THROWS_WITH_AS(memory("stack: vllm-0.9, max_model_len: 512"),
                       doctest::Contains("requests of 576 tokens, prompt and answer, exceed"),
                       ConfigError);
  CHECK_THROWS_WITH_AS(
      memory("stack: vllm-0.9, max_model_len: 200000"),
      doctest::Contains("max_model_len 200,000 exceeds the model's context_length 131,072; lower"),
      ConfigError);
}

TEST_CASE("Weights have the format in which their publisher has them") {
  const auto weights = [](const std::string& model) {
    return served::scenario("input_tokens: 8, output_tokens: 8, requests: 1", model)
        .serving.weights;
  };
  CHECK(weights("deepseek-v3") == WeightFormat::fp8);
  CHECK(weights("gpt-oss-20b") == WeightFormat::mxfp4);
  CHECK(weights("llama-3.1-405b") == WeightFormat::bf16);
  // Of Llama 3.1 405B in fp8 attention and two layers keep 16 bits.
  const auto model = served::scenario("input_tokens: 8, output_tokens: 8, requests: 1",
                                      "llama-3.1-405b", "dgx-h200")
                         .model;
  CHECK(weights_held(model, WeightFormat::fp8, {8, 1, 1, 1}).value / (1 << 30) ==
        doctest::Approx(56.75).epsilon(0.001));
  // Experts alone are narrow in mxfp4: 19.1 of 20.9 billion at 4.25 bits, the rest at 16.
  const auto oss =
      served::scenario("input_tokens: 8, output_tokens: 8, requests: 1", "gpt-oss-20b").model;
  CHECK(weights_held(oss, WeightFormat::mxfp4, {}).value ==
        doctest::Approx(19.11e9 * 4.25 / 8 + 1.80e9 * 2).epsilon(0.01));
}
