#include "costmodel/serving/step_time.hpp"

#include <doctest/doctest.h>

#include "costmodel/serving/serving_memory.hpp"
#include "costmodel/serving/steady_state.hpp"
#include "tests/costmodel/serving/support/served.hpp"

using namespace costmodel;

namespace {
StepLoad decode(double sequences, double context) {
  StepLoad load;
  load.decodes = sequences;
  load.decode_context = sequences * context;
  return load;
}
StepTimes times_of(const ServingScenario& s) {
  return {s.model, s.cluster, s.serving, sizes_of(s)};
}
}  // namespace

TEST_CASE("One sequence's token takes the weights over the bandwidth, and the cache's") {
  const auto s = served::usual();
  const StepParts parts = times_of(s).of(decode(1, 1000));
  const auto& c = s.serving.engine.constants;
  const double bandwidth = s.cluster.device.memory_bandwidth.value;
  // All but the embedding's table, of which a token reads a row.
  const double read = (6.738415616e9 - 32000.0 * 4096) * 2;
  CHECK(parts.weights.value == doctest::Approx(read / (bandwidth * c.memory_share)).epsilon(0.002));
  const double cached = 1000.0 * 32 * 2 * 32 * 128 * 2;
  CHECK(parts.cache.value == doctest::Approx(cached / (bandwidth * c.cache_share)));
  CHECK(parts.products.value < 0.05 * parts.weights.value);
  CHECK(parts.collectives.value == 0);
  CHECK(parts.host == c.host_step + c.host_sequence);
}

TEST_CASE("Of the weights no more are read from the host than there are") {
  ServingScenario s = served::usual();
  const auto transfers = [&](double bytes) {
    s.serving.cpu_offload = Bytes(bytes);
    return times_of(s).of(decode(1, 1000)).transfers;
  };
  const double held = times_of(s).weights_held().value;
  CHECK(transfers(held / 2) < transfers(held));
  CHECK(transfers(8 * held) == transfers(held));
}

TEST_CASE("Layers with a window read no more keys than it has, those with chunks half of one") {
  ServingScenario s = served::usual();
  const auto cache = [&](double context) { return times_of(s).of(decode(4, context)).cache.value; };
  const auto prompt = [&](double tokens) {
    StepLoad load;
    load.prefill_tokens = tokens;
    load.prefill_pairs = prefill_pairs(tokens, 0);
    load.prompts = load.prefilling = 1;
    return times_of(s).of(load).arithmetic.value;
  };
  const double full = cache(8192), short_full = cache(512), prompt_full = prompt(8192);
  s.model.sliding_window = 1024;
  s.model.attention_pattern = "SSSF";  // of 32 layers 24 have it
  CHECK(cache(8192) == doctest::Approx(full * (8 + 24 * 1024.0 / 8192) / 32));
  CHECK(cache(512) == doctest::Approx(short_full));
  CHECK(prompt(8192) < prompt_full);
  s.model.attention_pattern = "CCCF";
  s.model.attention_chunk = 4096;
  CHECK(cache(8192) == doctest::Approx(full * (8 + 24 * 2048.0 / 8192) / 32));
}

TEST_CASE("Without a server a step lacks what it takes where it shares the engine's process") {
  // vLLM's was in the engine's process until 0.6.
  for (const auto& [stack, share] : {std::pair("vllm-0.5", 33 / 62.0), {"vllm-0.9", 0.0}}) {
    CAPTURE(stack);
    const auto host = [&, stack = stack](const char* offline) {
      const auto s = served::on(std::string("stack: ") + stack + offline, "dgx-h100");
      return times_of(s).of(decode(1, 10)).host.value;
    };
    CHECK(host(", offline: true") == doctest::Approx(host("") * (1 - share)).epsilon(0.01));
  }
}

TEST_CASE("A step grows with its load, part by part") {
  const auto s = served::usual();
  const StepTimes times = times_of(s);
  double before = 0;
  for (const double n : {1.0, 2.0, 7.0, 64.0, 65.0, 100.0, 1000.0, 5000.0}) {
    const double total = times.of(decode(n, 100)).total().value;
    CHECK(total > before);
    before = total;
  }
  CHECK(times.of(decode(8, 2000)).cache.value ==
        doctest::Approx(2 * times.of(decode(8, 1000)).cache.value));
}

TEST_CASE("In fp32 a row takes as long to multiply as eight, and messages are twice as large") {
  const auto small = [](int tp) {
    return served::scenario(
        "weights: fp32, kv_cache: fp32, input_tokens: 48, output_tokens: 24, requests: 8",
        "llama-tiny", "laptop-cpu", 8, "{tp: " + std::to_string(tp) + ", dp: 1}");
  };
  const auto s = small(1), cut = small(2);
  CHECK(times_of(s).of(decode(1, 60)).arithmetic.value ==
        doctest::Approx(times_of(s).of(decode(8, 60)).arithmetic.value).epsilon(0.05));
  CHECK(times_of(s).of(decode(9, 60)).arithmetic.value >
        1.5 * times_of(s).of(decode(8, 60)).arithmetic.value);
  CHECK(times_of(cut).of(decode(8, 60)).collectives.value > 0);
  CHECK(element_bytes(cut.serving.weights) == 4);
}

TEST_CASE("A long prompt is bound by its products, of 2 FLOPs a parameter and token") {
  const auto s = served::usual();
  StepLoad load;
  load.prefill_tokens = 4096;
  load.prefill_pairs = prefill_pairs(4096, 0);
  load.prompts = 1;
  const StepParts parts = times_of(s).of(load);
  CHECK(parts.arithmetic > parts.reading);
  const double flops = 2 * 6.6e9 * 4096;
  CHECK(parts.total().value > flops / s.cluster.device.peak_of(Precision::bf16).value);
  CHECK(parts.total().value < 2.5 * flops / s.cluster.device.peak_of(Precision::bf16).value);
  CHECK(prefill_pairs(3, 10) == 36);
}

TEST_CASE("No graph is of a step with prompts: it takes the host's launches at least") {
  auto s = served::usual();
  StepLoad prompt;
  prompt.prefill_tokens = 64;
  prompt.prefill_pairs = prefill_pairs(64, 0);
  prompt.prompts = 1;
  s.serving.engine.constants.eager_kernel = Seconds(1e-3);
  for (const bool overlap : {false, true}) {
    s.serving.engine.host_overlap = overlap;
    const StepParts parts = times_of(s).of(prompt);
    CHECK(parts.kernels > 32 * 5);  // of 32 layers
    CHECK(parts.kernels < 32 * 20);
    CHECK(parts.total().value >= parts.kernels * 1e-3);
    CHECK(times_of(s).of(decode(1, 64)).total().value < 0.1 * parts.total().value);
  }
  // Where launches run ahead of the device nothing waits for them.
  s.serving.engine.host_overlap = false;
  s.serving.engine.constants.eager_kernel = Seconds(1e-9);
  const Seconds own =
      s.serving.engine.constants.host_step + s.serving.engine.constants.host_sequence;
  CHECK(times_of(s).of(prompt).host == own);
}

TEST_CASE("A product of fewer rows than a tile takes as long as a tile, where the device is slow") {
  auto s = served::usual();
  const auto arithmetic = [&](double rows) {
    return times_of(s).of(decode(rows, 1)).arithmetic.value;
  };
  s.cluster.device.gemm_tile_rows = 64;
  CHECK(arithmetic(1) == doctest::Approx(arithmetic(64)).epsilon(0.02));
  CHECK(arithmetic(65) == doctest::Approx(arithmetic(128)).epsilon(0.02));
  CHECK(arithmetic(65) > 1.02 * arithmetic(64));  // two tiles fill the device better than one
  const double fast = times_of(s).of(decode(1, 1)).total().value;
  for (FlopsPerSecond& peak : s.cluster.device.peak) peak = FlopsPerSecond(peak.value / 10);
  const StepParts slow = times_of(s).of(decode(1, 1));
  CHECK(slow.arithmetic > slow.reading);
  CHECK(slow.total().value > 1.5 * fast);
  s.cluster.device.gemm_tile_rows = 16;
  CHECK(arithmetic(1) == doctest::Approx(arithmetic(16)).epsilon(0.02));
  CHECK(times_of(s).of(decode(1, 1)).total() < slow.total());
}

TEST_CASE("tp reads a part of the weights, and pays all-reduces: dearly over PCIe") {
  const auto step = [](const char* cluster, int tp) {
    const auto s =
        served::scenario("input_tokens: 512, output_tokens: 128, concurrency: 32", "llama-2-7b",
                         cluster, 8, "{dp: 1, tp: " + std::to_string(tp) + "}");
    return times_of(s).of(decode(128, 500));
  };
  const StepParts one = step("dgx-a100", 1), two = step("dgx-a100", 2);
  const StepParts pcie = step("pcie-8x-rtx-4090", 2);
  CHECK(two.weights.value == doctest::Approx(one.weights.value / 2).epsilon(0.01));
  CHECK(two.collectives.value > 0);
  CHECK(pcie.collectives.value > 3 * two.collectives.value);
}

TEST_CASE("The engine's own all-reduce is for fast links, and for small messages") {
  const auto reduce = [](const char* cluster, int tp, double tokens) {
    auto s = served::scenario("input_tokens: 8, output_tokens: 8, requests: 1", "llama-2-7b",
                              cluster, 8, "{dp: 1, tp: " + std::to_string(tp) + "}");
    const double own = times_of(s).all_reduce(tokens).value;
    s.serving.engine.custom_all_reduce = Seconds(0);
    return std::pair(own, times_of(s).all_reduce(tokens).value);
  };
  const auto [nvlink, nccl] = reduce("dgx-h100", 8, 1);
  CHECK(nvlink < nccl);
  const auto [pcie, same] = reduce("pcie-8x-a100", 4, 1);
  CHECK(pcie == same);
  const auto [large, alike] = reduce("dgx-h100", 8, 8192);
  CHECK(large == alike);
}

TEST_CASE("What turns to products does so from some batch on, with experts as well") {
  const auto s =
      served::scenario("input_tokens: 1024, output_tokens: 512, concurrency: 256, weights: fp8",
                       "deepseek-v3", "dgx-h100", 16, "{tp: 8, pp: 2}");
  const StepTimes times = times_of(s);
  const double turning = turning_batch(times, s.serving);
  for (double n = 1; n <= 65536; n *= 2) {
    const StepParts parts = times.of(decode_load(s.serving, n));
    if (turning > 0 && n >= turning) CHECK(parts.arithmetic > parts.reading);
  }
  CHECK(turning != 1);
}

TEST_CASE("With pp a round passes all stages: no faster for one sequence") {
  const auto one = served::usual(), two = served::usual("{dp: 1, pp: 2}");
  const StepParts a = times_of(one).of(decode(1, 500)), b = times_of(two).of(decode(1, 500));
  CHECK(b.weights.value == doctest::Approx(2 * a.weights.value).epsilon(0.01));
  CHECK(b.transfers.value > 0);
}

TEST_CASE("Narrow weights are read faster; more experts are read by more tokens") {
  const auto weights = [](const char* format) {
    const auto s = served::scenario(
        std::string("input_tokens: 8, output_tokens: 8, requests: 1, weights: ") + format);
    return times_of(s).of(decode(1, 8)).weights.value;
  };
  CHECK(weights("fp8") < 0.55 * weights("bf16"));
  CHECK(weights("int4") < 0.65 * weights("fp8"));
  const auto moe = served::scenario("input_tokens: 8, output_tokens: 8, requests: 1",
                                    "mixtral-8x7b", "dgx-h100", 8, "{tp: 4}");
  const StepTimes times = times_of(moe);
  CHECK(times.of(decode(64, 8)).weights.value > 2.5 * times.of(decode(1, 8)).weights.value);
}

TEST_CASE("Experts over all replicas pay for their exchange") {
  const auto parts = [](const char* plan) {
    const auto s = served::scenario("input_tokens: 8, output_tokens: 8, requests: 1, weights: fp8",
                                    "deepseek-v3", "dgx-h100", 16, plan);
    return times_of(s).of(decode(32, 1000));
  };
  CHECK(parts("{tp: 1, dp: 16, ep: 16}").collectives.value > 58 * 2 * 30e-6);
  CHECK(parts("{tp: 16, ep: 16, dp: 1}").collectives.value > 0);
}
