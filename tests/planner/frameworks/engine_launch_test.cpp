#include "planner/frameworks/engine_launch.hpp"

#include <doctest/doctest.h>

#include "tests/costmodel/serving/support/served.hpp"

using namespace planner;
using doctest::Contains;

namespace {
bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}
costmodel::ServingScenario large(const std::string& plan, const std::string& more = "") {
  return served::scenario(
      "input_tokens: 8, output_tokens: 8, requests: 1, max_num_seqs: 64, "
      "max_num_batched_tokens: 2048, weights: fp8" +
          more,
      "deepseek-v3", "dgx-h100", 16, plan);
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

TEST_CASE("SGLang's limits are of all replicas where attention is data-parallel") {
  const auto spread = large("{tp: 1, ep: 16, dp: 16}");
  const auto launch = engine_launch(spread, sizes_of(spread), "sglang");
  for (const char* part : {"--max-running-requests 1024 ", "--chunked-prefill-size 32768 ",
                           "--nnodes 2 ", "--node-rank \"$NODE_RANK\"", "are of each"})
    CHECK_MESSAGE(says(launch.text, part), part);
  auto older = spread;
  older.serving.engine.name = "sglang-0.4";
  CHECK(says(engine_launch(older, sizes_of(older), "sglang").text, "--chunked-prefill-size 4096 "));
  const auto apart = large("{tp: 8, dp: 2}");
  const auto plain = engine_launch(apart, sizes_of(apart), "sglang");
  CHECK(says(plain.text, "--max-running-requests 64 "));
  CHECK(says(plain.text, "sglang_router.launch_router"));
  CHECK_FALSE(says(plain.text, "--dp-size"));
}

TEST_CASE("vLLM's replicas on two nodes meet at the first, and the script says how it is started") {
  const auto s = large("{tp: 4, ep: 16, dp: 4}");
  const auto launch = engine_launch(s, sizes_of(s), "vllm");
  for (const char* part :
       {"# 2 nodes: start this on each", "--data-parallel-size 4 ", "--data-parallel-size-local 2 ",
        "--data-parallel-address \"$HEAD\"", "--data-parallel-rpc-port 13345",
        "--data-parallel-start-rank $((NODE_RANK * 2))", "\"${HEADLESS[@]}\""})
    CHECK_MESSAGE(says(launch.text, part), part);
  REQUIRE(launch.notes.size() == 1);
  CHECK(says(launch.text, "# " + launch.notes[0] + "\nset -euo pipefail"));
  const auto cut = large("{tp: 8, pp: 2, dp: 1}");
  const auto ray = engine_launch(cut, sizes_of(cut), "vllm");
  CHECK(says(ray.text, "--distributed-executor-backend ray"));
  CHECK(says(ray.text, "# 2 nodes: start Ray on all of them"));
  const auto one = large("{tp: 8, dp: 1}");
  CHECK_FALSE(says(engine_launch(one, sizes_of(one), "vllm").text, "HEAD"));
}
