// Laws of serving, over scenarios drawn at random.
#include <doctest/doctest.h>

#include <string>

#include "tests/laws/law_draws.hpp"
#include "tests/laws/serving_draws.hpp"

TEST_CASE("scenarios of serving drawn at random obey the laws") {
  laws::hold(2000, 35, laws::serving_scenario, laws::broken_serving_law);
}

TEST_CASE("plan finds what a drawn plan reaches, where its own latencies are asked") {
  laws::hold(40, 50, laws::asked_scenario, laws::broken_asked);
}

TEST_CASE("scenarios that broke a law of serving") {
  const std::string all = "workload: inference\n";
  for (const char* yaml : {
           // Prompts that stop all decoding: all answers end at once, and none was measured.
           "model: deepseek-v2-lite\ncluster: {base: dgx-b200, devices: 4}\n"
           "serving: {stack: sglang-0.5, input_tokens: 17, output_tokens: 9, arrival_rate: 100}\n"
           "plan: {pp: 2, dp: 1}\n",
           // An answer of one token is in its place until it leaves the last stage.
           "model: qwen2-1.5b\ncluster: {base: dgx-h200, devices: 2}\n"
           "serving: {stack: vllm-0.6, input_tokens: 1, output_tokens: 1, arrival_rate: 5, "
           "weights: fp8}\n"
           "plan: {pp: 2}\n",
           // Of drawn lengths the long ones were left out, and the capacity was above the device's.
           "model: llama-2-70b\ncluster: {base: dgx-h100, devices: 4}\n"
           "serving: {stack: vllm-0.11, input_tokens: 500, output_tokens: {mean: 9, p95: 27}, "
           "arrival_rate: 20, weights: fp8, kv_cache: fp8}\n"
           "plan: {pp: 1}\n",
           // The first prompts of all replicas came from one pool at the same time.
           "model: llama-2-70b\ncluster: {base: dgx-b200, devices: 16}\n"
           "serving: {stack: tensorrt-llm-1.0, input_tokens: 3000, output_tokens: 9, "
           "requests: 16}\n"
           "plan: {disaggregation: {prefill: {}, decode: {dp: 4}}}\n",
           // Of two requests it is chance whether one comes in the step of the other.
           "model: qwen2-1.5b\ncluster: {base: dgx-h200, devices: 16}\n"
           "serving: {stack: vllm-0.6, input_tokens: 1024, output_tokens: 128, arrival_rate: 2, "
           "requests: 2}\n"
           "plan: {pp: 4, dp: 1}\n",
           // Prompts and tokens that missed a round of the stages by little waited for the next.
           "model: mixtral-8x7b\ncluster: {base: dgx-h200, devices: 16}\n"
           "serving: {stack: sglang-0.5, input_tokens: {mean: 17}, "
           "output_tokens: {mean: 2, p95: 6}, concurrency: 100}\n"
           "plan: {pp: 4}\n",
           "model: llama-2-7b\ncluster: {base: dgx-h100, devices: 16}\n"
           "serving: {stack: mindie-2.0, input_tokens: 17, output_tokens: {mean: 1, p95: 3}, "
           "concurrency: 16, prefix_hit_share: 0.5}\n"
           "plan: {pp: 4}\n",
           // A prompt that fills its blocks had no room for its answer once admitted: it was put
           // back.
           "model: llama-2-7b\ncluster: {base: dgx-a100, devices: 8}\n"
           "serving: {stack: sglang-0.4, input_tokens: 128, output_tokens: 9, arrival_rate: 100, "
           "prefix_hit_share: 0.5, gpu_memory_utilization: 0.3, block_size: 64}\n"
           "plan: {pp: 1}\n",
           // Prompts that stop all decoding keep answers from their end, so those that end in a
           // while are too many or too few.
           "model: llama-2-70b\ncluster: {base: dgx-a100, devices: 16}\n"
           "serving: {stack: sglang-0.4, input_tokens: {min: 1500, max: 4500}, "
           "output_tokens: {mean: 1, p95: 3}, arrival_rate: 0.5}\n"
           "plan: {tp: 2}\n",
           // Of four clients 3.4 have a request in the steps, more than three.
           "model: deepseek-v2-lite\ncluster: {base: dgx-b200, devices: 4}\n"
           "serving: {stack: deepseek-2025, input_tokens: 500, output_tokens: 1, concurrency: 16, "
           "weights: fp8, max_num_batched_tokens: 1024}\n"
           "plan: {pp: 1}\n",
           "model: llama-3-8b\ncluster: {base: dgx-b200, devices: 16}\n"
           "serving: {stack: tensorrt-llm-0.11, input_tokens: {min: 1, max: 1}, "
           "output_tokens: 1, concurrency: 7}\n"
           "plan: {disaggregation: {prefill: {dp: 2}, decode: {tp: 4, pp: 2}}}\n",
           // The scenario's own limits were not tried of sizes whose other limits miss the load.
           "model: deepseek-v2-lite\ncluster: {base: dgx-h200, devices: 4}\n"
           "serving: {stack: deepseek-2025, input_tokens: {mean: 17}, "
           "output_tokens: {mean: 1, p95: 3}, arrival_rate: 100, weights: fp8, kv_cache: fp8}\n",
           // Plans whose capacity the closed form takes for less than what arrives.
           "model: llama-3-8b\ncluster: {base: dgx-h100, devices: 16}\n"
           "serving: {stack: vllm-0.6, input_tokens: {mean: 3000}, "
           "output_tokens: {mean: 1, p95: 3}, arrival_rate: 20}\n",
           "model: qwen2-1.5b\ncluster: {base: dgx-h100, devices: 4}\n"
           "serving: {stack: tensorrt-llm-0.11, input_tokens: {min: 1500, max: 4500}, "
           "output_tokens: {mean: 256, p95: 768}, arrival_rate: 100, weights: fp8}\n",
           // Where no prompts are prefilled, the long answers at the end of a run were counted in
           // its capacity.
           "model: mistral-7b\ncluster: {base: pcie-8x-l40s}\n"
           "serving: {stack: deepseek-2025, input_tokens: 128, output_tokens: {mean: 128, p95: "
           "384}, arrival_rate: 0.5}\n"
           "plan: {disaggregation: {prefill: {dp: 2}, decode: {}}}\n",
           "model: llama-2-7b\ncluster: {base: dgx-h200, devices: 8}\n"
           "serving: {stack: vllm-0.5, input_tokens: {min: 9, max: 25}, output_tokens: {mean: 256, "
           "p95: 768}, arrival_rate: 0.5, gpu_memory_utilization: 0.3}\n"
           "plan: {disaggregation: {prefill: {}, decode: {}}}\n",
           // Of short answers four a client still end in the order of their start.
           "model: mistral-7b\ncluster: {base: dgx-h200, devices: 8}\n"
           "serving: {stack: mindie-2.0, input_tokens: {mean: 1}, output_tokens: {min: 1, max: 3}, "
           "concurrency: 256}\n"
           "plan: {pp: 1, dp: 1}\n",
           // ... and it is by chance how many steps of prompts lie between two of decoding.
           "model: mistral-7b\ncluster: {base: dgx-h200, devices: 8}\n"
           "serving: {stack: mindie-2.0, input_tokens: {mean: 1, p95: 3}, "
           "output_tokens: {min: 1, max: 3}, concurrency: 256}\n"
           "plan: {tp: 2, dp: 1}\n",
       }) {
    CAPTURE(yaml);
    CHECK(laws::broken_serving_law(all + yaml).value_or("") == "");
  }
}

TEST_CASE("a draw is the same each time, and most are priced") {
  CHECK(laws::serving_scenario(7) == laws::serving_scenario(7));
  int priced = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    try {
      const auto s =
          costmodel::read_serving(costmodel::parse_yaml(laws::serving_scenario(seed), "law.yaml"),
                                  "law", costmodel::config_path({}));
      priced += s.plan.tp || s.plan.disaggregation ? planned_estimate(s).fits : 1;
    } catch (const costmodel::ConfigError&) {
    }
  }
  CHECK(priced >= 40);
}
