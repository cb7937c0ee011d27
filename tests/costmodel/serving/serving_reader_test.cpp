#include "costmodel/serving/serving_reader.hpp"

#include <doctest/doctest.h>

#include "tests/costmodel/serving/support/served.hpp"

using namespace costmodel;
using doctest::Contains;

TEST_CASE("A scenario of serving is known by its workload") {
  const auto tells = [](const char* text) { return is_serving(parse_yaml(text, "s.yaml")); };
  CHECK(tells("workload: inference"));
  CHECK_FALSE(tells("model: gpt2"));
  CHECK(workload_kind(parse_yaml("workload: training", "s.yaml")) == WorkloadKind::training);
  CHECK_THROWS_WITH_AS(tells("workload: serving"), Contains("s.yaml:1:11"), ConfigError);
}

TEST_CASE("Lengths are a number, a mean with a percentile, or a range") {
  const auto s = served::scenario(
      "input_tokens: {mean: 500, p95: 1500}, output_tokens: {min: 100, max: 300}, arrival_rate: 2");
  CHECK(s.serving.input.p95 == 1500);
  CHECK(s.serving.output.mean == 200);
  CHECK(s.serving.limits.max_num_seqs == 256);
  CHECK(s.serving.seqs_open);
}

TEST_CASE("What is wrong with a scenario is told with its place") {
  const auto refused = [](const std::string& serving, const char* why) {
    CHECK_THROWS_WITH_AS(served::scenario(serving), Contains(why), ConfigError);
  };
  const std::string lengths = "input_tokens: 512, output_tokens: 128, ";
  refused("input_tokens: 512, concurrency: 4", "output_tokens");
  refused(lengths + "weights: bf16", "serving says no load");
  refused(lengths + "concurrency: 4, arrival_rate: 2", "arrival_rate beside concurrency");
  refused(lengths + "concurrency: 0", "concurrency");
  refused(lengths + "concurrency: 4, weights: int3", "weights");
  refused(lengths + "concurrency: 4, kv_cache: fp4", "kv_cache");
  refused(lengths + "concurrency: 4, prefix_hit_share: 1", "prefix_hit_share");
  refused(lengths + "concurrency: 4, max_seqs: 3", "max_seqs");
  refused("input_tokens: {mean: 10, p95: 100}, output_tokens: 1, requests: 5", "p95");
  refused("input_tokens: {min: 10, max: 5}, output_tokens: 1, requests: 5", "max");
  refused(lengths + "concurrency: 4, gpu_memory_utilization: 1.5", "gpu_memory_utilization");
}

TEST_CASE("Sizes that a model is not served with are refused") {
  const auto fault = [](const char* plan, const char* model = "llama-2-7b") {
    const auto s = served::scenario("input_tokens: 512, output_tokens: 128, concurrency: 4", model,
                                    "dgx-h100", 8, plan);
    try {
      sizes_of(s);
    } catch (const ConfigError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  CHECK(fault("{tp: 3, dp: 1}").find("32 attention heads are not divisible by tp 3") !=
        std::string::npos);
  CHECK(fault("{tp: 8, dp: 2}").find("16 devices of 8") != std::string::npos);
  CHECK(fault("{tp: 2, ep: 2}").find("ep without experts") != std::string::npos);
  CHECK(fault("{tp: 2, ep: 3, dp: 1}", "mixtral-8x7b").find("ep 3 neither") != std::string::npos);
  CHECK(fault("{tp: 4}").empty());
  CHECK(fault("{tp: 4, ep: 2, dp: 2}", "mixtral-8x7b").empty());
  auto narrow = served::usual("{tp: 4}").model;
  narrow.ffn_hidden = 6;  // a rank's share of an MLP is whole columns
  CHECK(sizes_fault({.tp = 4, .pp = 1, .ep = 1, .dp = 1}, narrow, served::usual("{}").cluster) ==
        "MLPs of 6 columns are not divisible by tp 4");
}

TEST_CASE("dp is as many replicas as there are devices for") {
  CHECK(sizes_of(served::usual("{tp: 2}")).dp == 4);
  CHECK(sizes_of(served::usual("{tp: 2, pp: 2}")).dp == 2);
}

TEST_CASE("Requests longer than the model's learned positions are refused; rotary ones are not") {
  CHECK_THROWS_WITH_AS(
      served::scenario("input_tokens: 2000, output_tokens: 100, requests: 1", "gpt3-1.3b"),
      Contains("2100 tokens exceed the model's 2048 learned positions"), ConfigError);
  CHECK_NOTHROW(
      served::scenario("input_tokens: 1900, output_tokens: 100, requests: 1", "gpt3-1.3b"));
  CHECK_NOTHROW(
      served::scenario("input_tokens: 200000, output_tokens: 100, requests: 1", "llama-2-7b"));
}

TEST_CASE("Models without a cache of keys have no serving") {
  CHECK_THROWS_WITH_AS(
      served::scenario("input_tokens: 8, output_tokens: 8, requests: 1", "mamba2-2.7b"),
      Contains("state-space"), ConfigError);
}

TEST_CASE("vLLM 0.7 does not chunk the prompts of latent attention") {
  const auto read = [](const std::string& model, const std::string& stack) {
    return read_serving(
               parse_yaml("workload: inference\nmodel: " + model +
                              "\ncluster: {base: dgx-h200, devices: 8}\nserving: {stack: " + stack +
                              ", input_tokens: 8, output_tokens: 8, concurrency: 1}\n"
                              "plan: {tp: 8}\n",
                          "latent.yaml"),
               "latent", config_path({}))
        .serving.limits;
  };
  CHECK_FALSE(read("deepseek-v3", "vllm-0.7").chunked_prefill);
  CHECK(read("deepseek-v3", "vllm-0.7").max_num_batched_tokens == 163'840);
  CHECK(read("llama-2-7b", "vllm-0.7").chunked_prefill);
  CHECK(read("deepseek-v3", "vllm-0.9").chunked_prefill);
}

TEST_CASE("Limits that no step has room for are refused, with what would do") {
  const std::string load = "input_tokens: 600, output_tokens: 8, requests: 1, ";
  const auto reading = [&](const std::string& limits) {
    return [load, limits] { served::scenario(load + limits); };
  };
  CHECK_THROWS_WITH_AS(reading("max_num_seqs: 64, max_num_batched_tokens: 32")(),
                       doctest::Contains("raise max_num_batched_tokens to 64 or more"),
                       ConfigError);
  CHECK_THROWS_WITH_AS(reading("chunked_prefill: false, max_num_batched_tokens: 512")(),
                       doctest::Contains("raise max_num_batched_tokens to 600 or more"),
                       ConfigError);
  CHECK_NOTHROW(reading("chunked_prefill: true, max_num_batched_tokens: 512")());
}

TEST_CASE("On devices without bf16 weights and cache are fp16, which engines are started with") {
  for (const char* more : {"", ", weights: bf16, kv_cache: bf16"}) {
    const auto s = served::scenario(
        std::string("input_tokens: 512, output_tokens: 128, concurrency: 4") + more, "llama-2-7b",
        "dgx-v100", 1);
    CHECK(s.serving.weights == costmodel::WeightFormat::fp16);
    CHECK(s.serving.kv_cache == costmodel::CacheFormat::fp16);
  }
  CHECK(served::usual().serving.weights == costmodel::WeightFormat::bf16);
}

TEST_CASE("Without an engine the engines are named") {
  const std::string text =
      "workload: inference\nmodel: llama-2-7b\ncluster: {base: dgx-h100, devices: 8}\n"
      "serving: {input_tokens: 8, output_tokens: 8, requests: 1}\n";
  CHECK_THROWS_WITH_AS(read_serving(parse_yaml(text, "x.yaml"), "x", config_path({})),
                       doctest::Contains("add stack: one of "), ConfigError);
}
