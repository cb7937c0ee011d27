#include "planner/frameworks/engine_launch.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/costmodel/serving/support/served.hpp"

using namespace planner;
using doctest::Contains;

namespace {
bool holds(const std::string& text, const std::string& part) {
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

TEST_CASE("A launch of vLLM has the plan's and the limits' arguments") {
  auto s = served::scenario(
      "input_tokens: 8, output_tokens: 8, requests: 1, weights: fp8, kv_cache: fp8, "
      "swap_space_bytes: 4 GiB, cpu_offload_bytes: 2 GiB, prefix_hit_share: 0.5",
      "deepseek-v3", "dgx-h100", 16, "{tp: 8, ep: 16, dp: 2}");
  const auto launch = engine_launch(s, sizes_of(s), "vllm");
  for (const char* part :
       {"vllm serve \"$MODEL\"", "--tensor-parallel-size 8", "--data-parallel-size 2",
        "--enable-expert-parallel", "--quantization fp8", "--kv-cache-dtype fp8",
        "--cpu-offload-gb 2", "--enable-prefix-caching", "--gpu-memory-utilization 0.9",
        "--max-num-seqs 256"})
    CHECK_MESSAGE(holds(launch.text, part), part);
  CHECK(launch.notes.size() == 1);
  const auto sglang = engine_launch(s, sizes_of(s), "sglang");
  for (const char* part : {"--tp-size 16", "--dp-size 2", "--enable-dp-attention", "--ep-size 16"})
    CHECK_MESSAGE(holds(sglang.text, part), part);
  CHECK_THROWS_WITH_AS(engine_launch(s, {}, "megatron"), Contains("--to vllm, sglang"),
                       costmodel::ConfigError);
  CHECK_THROWS_WITH_AS(engine_launch(s, {}, ""), Contains("lacks --to"), costmodel::ConfigError);
}

TEST_CASE("SGLang's limits are of all replicas where attention is data-parallel") {
  const auto spread = large("{tp: 1, ep: 16, dp: 16}");
  const auto launch = engine_launch(spread, sizes_of(spread), "sglang");
  for (const char* part : {"--max-running-requests 1024 ", "--chunked-prefill-size 32768 ",
                           "--nnodes 2 ", "--node-rank \"$NODE_RANK\"", "are of each"})
    CHECK_MESSAGE(holds(launch.text, part), part);
  auto older = spread;
  older.serving.engine.name = "sglang-0.4";
  CHECK(
      holds(engine_launch(older, sizes_of(older), "sglang").text, "--chunked-prefill-size 4096 "));
  const auto apart = large("{tp: 8, dp: 2}");
  const auto plain = engine_launch(apart, sizes_of(apart), "sglang");
  CHECK(holds(plain.text, "--max-running-requests 64 "));
  CHECK(holds(plain.text, "sglang_router.launch_router"));
  CHECK_FALSE(holds(plain.text, "--dp-size"));
}

TEST_CASE("SGLang fills experts that ep does not divide with copies") {
  const auto uneven = large("{tp: 1, ep: 12, dp: 12}");
  const std::int64_t rest = uneven.model.experts % 12;
  REQUIRE(rest > 0);
  CHECK(holds(engine_launch(uneven, sizes_of(uneven), "sglang").text,
              fmt::format("--ep-num-redundant-experts {} ", 12 - rest)));
  const auto even = large("{tp: 1, ep: 16, dp: 16}");
  CHECK_FALSE(holds(engine_launch(even, sizes_of(even), "sglang").text, "redundant"));
}

TEST_CASE("vLLM's replicas on two nodes meet at the first, and the script says how it is started") {
  const auto s = large("{tp: 4, ep: 16, dp: 4}");
  const auto launch = engine_launch(s, sizes_of(s), "vllm");
  for (const char* part :
       {"# 2 nodes: start this on each", "--data-parallel-size 4 ", "--data-parallel-size-local 2 ",
        "--data-parallel-address \"$HEAD\"", "--data-parallel-rpc-port 13345",
        "--data-parallel-start-rank $((NODE_RANK * 2))", "\"${HEADLESS[@]}\""})
    CHECK_MESSAGE(holds(launch.text, part), part);
  REQUIRE(launch.notes.size() == 1);
  CHECK(holds(launch.text, "# " + launch.notes[0] + "\nset -euo pipefail"));
  const auto cut = large("{tp: 8, pp: 2, dp: 1}");
  const auto ray = engine_launch(cut, sizes_of(cut), "vllm");
  CHECK(holds(ray.text, "--distributed-executor-backend ray"));
  CHECK(holds(ray.text, "# 2 nodes: start Ray on all of them"));
  const auto one = large("{tp: 8, dp: 1}");
  CHECK_FALSE(holds(engine_launch(one, sizes_of(one), "vllm").text, "HEAD"));
}

namespace {

costmodel::ServingScenario small(const std::string& engine, const std::string& serving,
                                 const std::string& plan = "{tp: 4, dp: 1}",
                                 const std::string& model = "llama-3.1-8b") {
  auto s = served::scenario("input_tokens: 1024, output_tokens: 256, concurrency: 64" + serving,
                            model, "dgx-h100", 16, plan);
  s.serving.engine.name = engine;
  return s;
}

std::string text_of(const costmodel::ServingScenario& s, const char* target) {
  return engine_launch(s, sizes_of(s), target).text;
}

}  // namespace

TEST_CASE("vLLM starts: the longest request, a step that holds it, no more sequences than tokens") {
  CHECK(holds(text_of(small("vllm-0.11", ""), "vllm"), "--max-model-len 1280 "));
  const std::string uncut = text_of(small("vllm-0.6", ", chunked_prefill: false"), "vllm");
  CHECK(holds(uncut, "--no-enable-chunked-prefill"));
  CHECK(holds(uncut, "--max-model-len 1280 "));
  auto few = small("vllm-0.11", ", chunked_prefill: true, max_num_batched_tokens: 512");
  few.serving.limits.max_num_seqs = 1024;  // the engine's own
  CHECK(holds(text_of(few, "vllm"), "--max-num-seqs 512 "));
  auto little = small("vllm-0.11", ", chunked_prefill: false, max_num_batched_tokens: 2048");
  little.serving.limits.max_num_batched_tokens = 1200;
  CHECK_THROWS_WITH_AS(text_of(little, "vllm"), Contains("holds no request of 1280"),
                       costmodel::ConfigError);
  const auto host = small("vllm-0.11", ", swap_space_bytes: 8 GiB");
  CHECK_FALSE(holds(text_of(host, "vllm"), "--swap-space"));
  const auto notes = engine_launch(host, sizes_of(host), "vllm").notes;
  REQUIRE(notes.size() == 1);
  CHECK(holds(notes[0], "gone since 0.18"));
  CHECK(holds(text_of(small("vllm-0.6", ", swap_space_bytes: 8 GiB"), "vllm"), "--swap-space 8"));
  CHECK_THROWS_WITH_AS(text_of(small("vllm-0.11", ", block_size: 24"), "vllm"),
                       Contains("no blocks of 24 tokens"), costmodel::ConfigError);
  const auto latent = small("vllm-0.11", "", "{tp: 4}", "deepseek-v2-lite");
  CHECK_FALSE(holds(text_of(latent, "vllm"), "--block-size"));
}

TEST_CASE("A length that is written is launched, and graphs are left off") {
  const auto long_one = small("vllm-0.11", ", max_model_len: 8k, cuda_graphs: false");
  CHECK(holds(text_of(long_one, "vllm"), "--max-model-len 8192 "));
  CHECK(holds(text_of(long_one, "vllm"), "--enforce-eager"));
  CHECK(holds(text_of(long_one, "sglang"), "--disable-cuda-graph"));
}

TEST_CASE("SGLang's words for host memory, pipelines, experts and blocks") {
  const auto host = small("sglang-0.5", ", cpu_offload_bytes: 8 GiB", "{tp: 1, dp: 1}");
  CHECK(holds(text_of(host, "sglang"), "--cpu-offload-gb 8"));
  CHECK(holds(text_of(host, "sglang"), "--context-length 1282"));
  CHECK(engine_launch(host, sizes_of(host), "sglang").notes.empty());
  const auto cut = small("sglang-0.5", ", chunked_prefill: true", "{tp: 2, pp: 2}");
  CHECK_FALSE(holds(text_of(cut, "sglang"), "--enable-mixed-chunk"));
  const auto spread = small("sglang-0.4", ", weights: fp8", "{tp: 16, ep: 16}", "deepseek-v3");
  CHECK(holds(text_of(spread, "sglang"), "--enable-ep-moe"));
  CHECK_THROWS_WITH_AS(text_of(small("sglang-0.5", ", block_size: 24"), "sglang"),
                       Contains("no multiple of blocks of 24"), costmodel::ConfigError);
}

TEST_CASE("independent replicas that one launch would join are launches of their own") {
  const auto several = small("vllm-0.11", "", "{tp: 2, ep: 2, dp: 4}", "qwen3-30b-a3b");
  const auto launch = engine_launch(several, sizes_of(several), "vllm");
  CHECK_FALSE(holds(launch.text, "  --data-parallel-size "));
  CHECK(holds(launch.text, "--enable-expert-parallel"));
  CHECK(holds(launch.text, "one of 4 replicas"));
  const auto dense = small("vllm-0.11", "", "{tp: 2, dp: 4}");
  CHECK(holds(text_of(dense, "vllm"), "--data-parallel-size 4"));
  const auto cut = served::scenario("input_tokens: 8, output_tokens: 8, requests: 1",
                                    "qwen3-30b-a3b", "dgx-h100", 32, "{tp: 8, pp: 2, dp: 2}");
  CHECK_FALSE(holds(text_of(cut, "sglang"), "  --dp-size"));
  CHECK(holds(text_of(cut, "sglang"), "--nnodes 2 "));
  CHECK(holds(text_of(cut, "sglang"), "start it for each"));
  const auto part = small("vllm-0.11", "", "{tp: 4, ep: 2, dp: 1}", "qwen3-30b-a3b");
  CHECK_THROWS_WITH_AS(text_of(part, "vllm"), Contains("set plan.ep to 1, 4 or 4"),
                       costmodel::ConfigError);
  CHECK(holds(text_of(part, "sglang"), "--ep-size 2"));
}

TEST_CASE("SGLang runs no more requests than a step has tokens, where none are named") {
  const auto few = small("sglang-0.5", ", chunked_prefill: true, max_num_batched_tokens: 128");
  CHECK(holds(text_of(few, "sglang"), "--max-running-requests 128 "));
}

TEST_CASE("a format that the published checkpoint has not is that of another one") {
  const auto wide = small("sglang-0.5", ", weights: bf16", "{tp: 4}", "gpt-oss-20b");
  CHECK(holds(text_of(wide, "sglang"), "bf16 weights need a checkpoint"));
  const auto own = small("sglang-0.5", ", weights: mxfp4", "{tp: 4}", "gpt-oss-20b");
  CHECK(holds(text_of(own, "sglang"), "--quantization mxfp4"));
  CHECK_FALSE(holds(text_of(own, "sglang"), "need a checkpoint"));
}

TEST_CASE("no engine starts with more tokens than the model takes") {
  const auto longer = small("vllm-0.11", "", "{tp: 1}", "pythia-160m");  // 2,048
  CHECK(holds(text_of(longer, "sglang"), "--context-length 1282"));
  auto most = longer;
  most.model.context_length = 1281;
  CHECK(holds(text_of(most, "sglang"), "--context-length 1281"));
  most.model.context_length = 1279;
  for (const char* engine : {"vllm", "sglang"})
    CHECK_THROWS_WITH_AS(text_of(most, engine), Contains("for a model of 1279"),
                         costmodel::ConfigError);
}

TEST_CASE("in the words of a release, and with the engine that an import reads") {
  const auto plain = small("sglang-0.5", ", cuda_graphs: false");
  const auto launch = engine_launch(plain, sizes_of(plain), "sglang", "0.5.17");
  CHECK(holds(launch.text, "--cuda-graph-backend-decode disabled"));
  CHECK(holds(launch.text, "--cuda-graph-backend-prefill disabled"));
  CHECK_FALSE(holds(launch.text, "  --disable-cuda-graph"));
  CHECK(holds(launch.notes.back(), "SGLang 0.5.17 has"));
  CHECK(holds(launch.text, ", for sglang==0.5\n"));
  const auto older = small("vllm-0.6", ", swap_space_bytes: 8 GiB");
  CHECK_THROWS_WITH_AS(engine_launch(older, sizes_of(older), "vllm", "0.26"),
                       Contains("vLLM 0.26 has no --swap-space"), costmodel::ConfigError);
  CHECK_THROWS_WITH_AS(engine_launch(older, sizes_of(older), "vllm", "1.0"),
                       Contains("known: 0.18, 0.26"), costmodel::ConfigError);
}

namespace {

costmodel::ServingScenario pools(const std::string& engine, const std::string& prefill) {
  return small(engine, "", "{disaggregation: {prefill: " + prefill + ", decode: {tp: 8, dp: 1}}}");
}

}  // namespace

TEST_CASE("Pools of prompts and of decoding are one script, whose launches send keys and values") {
  const auto s = pools("vllm-0.11", "{tp: 4, dp: 2}");
  const auto launch = engine_launch(s, sizes_of(s), "vllm");
  for (const char* part :
       {"# llama-3.1-8b on 16 devices", "# start this with ROLE=prefill", "ROLE=${ROLE:?",
        "if [ \"$ROLE\" = prefill ]; then", "if [ \"$ROLE\" = decode ]; then",
        "VLLM_NIXL_SIDE_CHANNEL_HOST",
        "--kv-transfer-config '{\"kv_connector\":\"NixlConnector\",\"kv_role\":\"kv_both\"}'"})
    CHECK_MESSAGE(holds(launch.text, part), part);
  REQUIRE(launch.pools.size() == 2);
  CHECK(launch.pools[0].arguments[0].second == "4");
  CHECK(launch.pools[1].arguments[0].second == "8");
  const auto sglang = pools("sglang-0.5", "{tp: 4, pp: 2}");
  const std::string text = text_of(sglang, "sglang");
  for (const char* part : {"--disaggregation-mode prefill", "--disaggregation-mode decode",
                           "--disaggregation-transfer-backend nixl", "--pd-disaggregation"})
    CHECK_MESSAGE(holds(text, part), part);
  CHECK_FALSE(holds(text, "--enable-mixed-chunk"));
}

TEST_CASE("pools on one node have devices and ports of their own") {
  const auto near =
      small("vllm-0.11", "", "{disaggregation: {prefill: {tp: 2, dp: 2}, decode: {tp: 4, dp: 1}}}");
  const std::string text = text_of(near, "vllm");
  for (const char* part : {":-0,1,2,3}", ":-4,5,6,7}", "CHANNEL_PORT=5600", "CHANNEL_PORT=5700",
                           "--port 8100", "--port 8200"})
    CHECK_MESSAGE(holds(text, part), part);
  CHECK_FALSE(holds(text_of(pools("vllm-0.11", "{tp: 4, dp: 2}"), "vllm"), "--port"));
}

TEST_CASE("pools that an engine has no words for are refused with what to set") {
  CHECK_THROWS_WITH_AS(text_of(pools("vllm-0.11", "{tp: 4, pp: 2}"), "vllm"),
                       Contains("NixlConnector takes pp 1"), costmodel::ConfigError);
  CHECK_THROWS_WITH_AS(text_of(pools("vllm-0.6", "{tp: 8}"), "vllm"),
                       Contains("vllm-0.6 has no words for prompts on devices of their own"),
                       costmodel::ConfigError);
  CHECK(pools_refusal(small("vllm-0.6", ""), "vllm").empty());
  CHECK_THROWS_WITH_AS(text_of(pools("vllm-0.11", "{tp: 3}"), "vllm"),
                       Contains("32 attention heads are not divisible by tp 3"),
                       costmodel::ConfigError);
}

TEST_CASE("formats that an engine can't make while loading, and those it calls otherwise") {
  const auto cache = small("vllm-0.11", ", kv_cache: int8");
  CHECK(holds(text_of(cache, "vllm"), "# vLLM has no cache of int8: this is fp8"));
  CHECK(holds(text_of(cache, "sglang"), "# SGLang has no cache of int8: this is fp8"));
  const auto dense = small("vllm-0.11", ", weights: mxfp4", "{tp: 4}", "mixtral-8x7b");
  CHECK(holds(text_of(dense, "vllm"), "mxfp4 weights need a checkpoint of that format"));
  const auto half = small("sglang-0.5", ", weights: fp16");
  CHECK(holds(text_of(half, "sglang"), "--dtype float16"));
}
