#include "planner/serving/engine_arguments.hpp"

#include <doctest/doctest.h>

#include "tests/costmodel/serving/support/served.hpp"

using namespace planner;
using doctest::Contains;

namespace {
const std::vector<std::string> models{"llama-2-7b", "deepseek-v3"};
std::string text_of(const ImportedJob& job) { return to_yaml(job); }
bool says(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}
}  // namespace

TEST_CASE("vLLM's ranks: pp_rank x tp + tp_rank") {
  CHECK(tensor_groups({4, 2, 1, 1}) == std::vector<std::vector<int>>{{0, 1, 2, 3}, {4, 5, 6, 7}});
}

TEST_CASE("A launch of vLLM has the plan's and the limits' arguments") {
  auto s = served::scenario(
      "input_tokens: 8, output_tokens: 8, requests: 1, weights: fp8, kv_cache: fp8, "
      "swap_space_bytes: 4 GiB, cpu_offload_bytes: 2 GiB, prefix_hit_share: 0.5",
      "deepseek-v3", "dgx-h100", 16, "{tp: 8, ep: 16, dp: 2}");
  const auto launch = engine_launch(s, sizes_of(s), "vllm");
  for (const char* part :
       {"vllm serve \"$MODEL\"", "--tensor-parallel-size 8", "--data-parallel-size 2",
        "--enable-expert-parallel", "--quantization fp8", "--kv-cache-dtype fp8", "--swap-space 4",
        "--cpu-offload-gb 2", "--enable-prefix-caching", "--block-size 16",
        "--gpu-memory-utilization 0.9", "--max-num-seqs 256"})
    CHECK_MESSAGE(says(launch.text, part), part);
  CHECK(launch.notes.size() == 1);
  const auto sglang = engine_launch(s, sizes_of(s), "sglang");
  for (const char* part : {"--tp-size 16", "--dp-size 2", "--enable-dp-attention", "--ep-size 16"})
    CHECK_MESSAGE(says(sglang.text, part), part);
  CHECK_THROWS_WITH_AS(engine_launch(s, {}, "megatron"), Contains("--to vllm, sglang"),
                       costmodel::ConfigError);
  CHECK_THROWS_WITH_AS(engine_launch(s, {}, ""), Contains("lacks --to"), costmodel::ConfigError);
}

TEST_CASE("Arguments come back as a scenario, from a command and from a map") {
  const auto job = import_vllm(
      "vllm serve meta-llama/Llama-2-7b-chat-hf -tp 2 --pipeline-parallel-size=2 --block-size 32 "
      "\\\n"
      "  --gpu-memory-utilization 0.85 --swap-space 4 --enable-prefix-caching --max-num-seqs 64 "
      "--seed 3\n",
      "serve.sh", models);
  const std::string text = text_of(job);
  for (const char* part :
       {"model: llama-2-7b", "tp: 2", "pp: 2", "devices: 4", "block_size: 32",
        "gpu_memory_utilization: 0.85", "swap_space_bytes: 4294967296", "max_num_seqs: 64",
        "input_tokens: REPLACE", "Left out: --seed 3", "prefix_hit_share"})
    CHECK_MESSAGE(says(text, part), part);
  const std::string map = text_of(import_vllm(
      "{model: deepseek-ai/DeepSeek-V3, tensor_parallel_size: 8, data_parallel_size: 2, "
      "enable_expert_parallel: true, cpu_offload_gb: 1, quantization: fp8}",
      "engine.yaml", models));
  for (const char* part : {"model: deepseek-v3", "tp: 8", "ep: 16", "dp: 2", "weights: fp8",
                           "cpu_offload_bytes: 1073741824"})
    CHECK_MESSAGE(says(map, part), part);
}

TEST_CASE("DeepSeek-R1 is served as DeepSeek-V3, its distilled models are not") {
  const auto of = [](const char* model) {
    return text_of(import_vllm(std::string("vllm serve ") + model + " -tp 8", "x.sh", models));
  };
  CHECK(says(of("deepseek-ai/DeepSeek-R1-0528"), "model: deepseek-v3"));
  CHECK(says(of("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B"), "model: REPLACE"));
}

TEST_CASE("What is no engine argument is refused") {
  CHECK_THROWS_WITH_AS(import_vllm("echo --hello", "x.sh", models), Contains("no engine argument"),
                       costmodel::ConfigError);
  CHECK_THROWS_WITH_AS(import_vllm("vllm serve m --swap-space much", "x.sh", models),
                       Contains("is no number of GiB"), costmodel::ConfigError);
}

TEST_CASE("An export is imported again with the same sizes") {
  const auto s = served::usual("{tp: 2, pp: 2, dp: 2}");
  const auto job = import_vllm(engine_launch(s, sizes_of(s), "vllm").text, "x.sh", models);
  const std::string text = text_of(job);
  for (const char* part : {"tp: 2", "pp: 2", "dp: 2", "devices: 8", "max_num_seqs: 256"})
    CHECK_MESSAGE(says(text, part), part);
}
