#include "planner/frameworks/engine_arguments.hpp"

#include <doctest/doctest.h>

#include "planner/frameworks/engine_launch.hpp"
#include "tests/costmodel/serving/support/served.hpp"

using namespace planner;
using doctest::Contains;

namespace {
const std::vector<std::string> models{"llama-2-7b", "deepseek-v3"};
const std::vector<std::string> engines{"sglang-0.5", "vllm-0.11", "vllm-0.6", "vllm-0.9"};
std::string text_of(const ImportedJob& job) { return to_yaml(job); }
bool holds(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}
}  // namespace

TEST_CASE("Arguments come back as a scenario, from a command and from a map") {
  const auto job = import_engine(
      "vllm serve meta-llama/Llama-2-7b-chat-hf -tp 2 --pipeline-parallel-size=2 --block-size 32 "
      "\\\n"
      "  --gpu-memory-utilization 0.85 --swap-space 4 --enable-prefix-caching --max-num-seqs 64 "
      "--seed 3\n",
      "serve.sh", "vllm", models, engines);
  const std::string text = text_of(job);
  for (const char* part :
       {"model: llama-2-7b", "tp: 2", "pp: 2", "devices: 4", "block_size: 32",
        "gpu_memory_utilization: 0.85", "swap_space_bytes: 4294967296", "max_num_seqs: 64",
        "input_tokens: REPLACE", "Left out: --seed 3", "prefix_hit_share"})
    CHECK_MESSAGE(holds(text, part), part);
  const std::string map = text_of(import_engine(
      "{model: deepseek-ai/DeepSeek-V3, tensor_parallel_size: 8, data_parallel_size: 2, "
      "enable_expert_parallel: true, cpu_offload_gb: 1, quantization: fp8}",
      "engine.yaml", "vllm", models, engines));
  for (const char* part : {"model: deepseek-v3", "tp: 8", "ep: 16", "dp: 2", "weights: fp8",
                           "cpu_offload_bytes: 1073741824"})
    CHECK_MESSAGE(holds(map, part), part);
}

TEST_CASE("DeepSeek-R1 is served as DeepSeek-V3, its distilled models are not") {
  const auto of = [](const char* model) {
    return text_of(import_engine(std::string("vllm serve ") + model + " -tp 8", "x.sh", "vllm",
                                 models, engines));
  };
  CHECK(holds(of("deepseek-ai/DeepSeek-R1-0528"), "model: deepseek-v3"));
  CHECK(holds(of("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B"), "model: REPLACE"));
}

TEST_CASE("Lengths, graphs and checkpoints of a model's shape are read") {
  const auto of = [](const std::string& words) {
    return text_of(import_engine("vllm serve " + words, "x.sh", "vllm",
                                 {"llama-3.3-70b", "qwen2-7b", "gpt-oss-120b"}, engines));
  };
  const std::string llama =
      of("meta-llama/Llama-3.3-70B-Instruct -tp 4 --max-model-len 32K --enforce-eager");
  for (const char* part : {"model: llama-3.3-70b", "max_model_len: 32768", "cuda_graphs: false"})
    CHECK_MESSAGE(holds(llama, part), part);
  CHECK_FALSE(holds(llama, "Left out"));
  CHECK(holds(of("Qwen/Qwen2.5-7B-Instruct --max-model-len 25.6k"), "max_model_len: 25600"));
  CHECK(holds(of("openai/gpt-oss-120b --max-model-len auto"), "max_model_len: auto"));
  CHECK(holds(of("openai/gpt-oss-120b -tp 2"), "model: gpt-oss-120b"));
  CHECK_THROWS_WITH_AS(of("openai/gpt-oss-120b --max-model-len long"), Contains("number from 1 on"),
                       costmodel::ConfigError);
}

TEST_CASE("What is no engine argument is refused") {
  CHECK_THROWS_WITH_AS(import_engine("echo --hello", "x.sh", "vllm", models, engines),
                       Contains("no engine argument"), costmodel::ConfigError);
  CHECK_THROWS_WITH_AS(
      import_engine("vllm serve m --swap-space much", "x.sh", "vllm", models, engines),
      Contains("is no number of GiB"), costmodel::ConfigError);
}

TEST_CASE("An export is imported again with the same sizes") {
  const auto s = served::usual("{tp: 2, pp: 2, dp: 2}");
  const auto job =
      import_engine(engine_launch(s, sizes_of(s), "vllm").text, "x.sh", "vllm", models, engines);
  const std::string text = text_of(job);
  for (const char* part : {"tp: 2", "pp: 2", "dp: 2", "devices: 8", "max_num_seqs: 256"})
    CHECK_MESSAGE(holds(text, part), part);
}

TEST_CASE("Of a script only the engine's own command counts") {
  const auto job = import_engine(
      "set -euo pipefail\nexport HF_HOME=/data\npython3 -u -m vllm.entrypoints.openai.api_server "
      "--model meta-llama/Llama-2-7b-hf -tp 2\n",
      "x.sh", "vllm", models, engines);
  CHECK(job.left_out.empty());
  CHECK(holds(text_of(job), "model: llama-2-7b"));
  CHECK_THROWS_WITH_AS(import_engine("set -euo pipefail\n", "x.sh", "vllm", models, engines),
                       Contains("no engine argument"), costmodel::ConfigError);
  CHECK_THROWS_WITH_AS(import_engine("banana\n", "x.sh", "vllm", models, engines),
                       Contains("no engine argument"), costmodel::ConfigError);
  CHECK(holds(text_of(import_engine("--tensor-parallel-size 4", "x.sh", "vllm", models, engines)),
              "tp: 4"));
}

TEST_CASE("Words that are no values are refused or left out, not written into the scenario") {
  CHECK_THROWS_WITH_AS(import_engine("vllm serve m -tp banana", "x.sh", "vllm", models, engines),
                       Contains("--tensor-parallel-size is 'banana'"), costmodel::ConfigError);
  const std::string text = text_of(
      import_engine("vllm serve m -tp 2 --quantization banana", "x.sh", "vllm", models, engines));
  CHECK(holds(text, "Left out: --quantization banana"));
  CHECK_FALSE(holds(text, "weights:"));
}

TEST_CASE("The version of an image or a package chooses the engine") {
  const auto of = [](const std::string& words) {
    return text_of(import_engine(words, "x.sh", "vllm", models, engines));
  };
  CHECK(holds(of("docker run --gpus all vllm/vllm-openai:v0.7.3 --model m -tp 2"),
              "stack: vllm-0.6"));
  CHECK(holds(of("pip install vllm==0.12.0\nvllm serve m -tp 2"), "stack: vllm-0.11"));
  CHECK(holds(of("vllm serve m -tp 2"), "write serving.stack (shardplan list engines)"));
  CHECK(holds(of("docker run vllm/vllm-openai:latest --model m -tp 2"), "stack: vllm-0.9"));
}

TEST_CASE("a command of SGLang, whose sizes count all replicas of data-parallel attention") {
  const auto job = import_engine(
      "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-V3 --tp 16 --dp-size 4 "
      "--enable-dp-attention --ep-size 16 --mem-fraction-static 0.85 --max-running-requests 256",
      "x.sh", "sglang", models, engines);
  const std::string text = text_of(job);
  for (const char* part : {"tp: 4", "dp: 4", "ep: 16", "gpu_memory_utilization: 0.85",
                           "max_num_seqs: 64", "devices: 16"})
    CHECK_MESSAGE(holds(text, part), part);
  CHECK_THROWS_WITH_AS(import_engine("echo --hello", "x.sh", "sglang", models, engines),
                       Contains("holds no engine argument of SGLang"), costmodel::ConfigError);
}

TEST_CASE("DeepSeek's own checkpoints are in fp8, as its model's file has it") {
  const auto text = text_of(
      import_engine("vllm serve deepseek-ai/DeepSeek-V3 -tp 8", "x.sh", "vllm", models, engines));
  CHECK(holds(text, "model: deepseek-v3"));
  CHECK_FALSE(holds(text, "weights"));
}

TEST_CASE("ranks of experts, switches that are off, and sizes that do not divide") {
  const auto of = [](const std::string& words, const char* family) {
    return text_of(import_engine(words, "x.sh", family, models, engines));
  };
  const std::string sglang = "python3 -m sglang.launch_server --model-path Qwen/Qwen3-30B-A3B ";
  CHECK(holds(of(sglang + "--tp-size 8 --ep-size 4", "sglang"), "ep: 4"));
  CHECK(holds(of(sglang + "--tp-size 8 --dp-size 2 --ep-size 8", "sglang"), "ep: 8"));
  const std::string yaml = "tensor-parallel-size: 8\nenable-expert-parallel: false\n";
  CHECK_FALSE(holds(of(yaml, "vllm"), "ep:"));
  const std::string attention = "tp-size: 8\ndp-size: 4\nenable-dp-attention: false\n";
  CHECK(holds(of(attention, "sglang"), "devices: 32"));
  for (const char* fault :
       {"--tp-size 8 --ep-size 0", "--tp-size 8 --dp-size 3 --enable-dp-attention",
        "--tp-size 9223372036854775807"})
    CHECK_THROWS_AS(of(sglang + fault, "sglang"), costmodel::ConfigError);
  CHECK_FALSE(holds(of(sglang + "--tp-size 8 --chunked-prefill-size -1", "sglang"),
                    "max_num_batched_tokens"));
  CHECK(holds(of("vllm serve m -tp 2 --no-enable-chunked-prefill", "vllm"),
              "chunked_prefill: false"));
}

TEST_CASE("a checkpoint's format by its name") {
  const auto of = [](const std::string& model) {
    return text_of(
        import_engine("vllm serve " + model + " -tp 8", "x.sh", "vllm", models, engines));
  };
  CHECK_FALSE(holds(of("deepseek-ai/DeepSeek-V3"), "weights:"));
  CHECK(holds(of("unsloth/DeepSeek-V3-bf16"), "weights: bf16"));
  CHECK(holds(of("cognitivecomputations/DeepSeek-R1-AWQ"), "weights: int4"));
  CHECK(holds(of("nvidia/DeepSeek-R1-FP4"), "weights: nvfp4"));
}

TEST_CASE("weights that neither the name nor --quantization states are left to the reader") {
  const auto of = [](const std::string& words) {
    return text_of(import_engine("vllm serve " + words, "x.sh", "vllm", models, engines));
  };
  CHECK(holds(of("a/Llama-2-7b-chat-GPTQ-Int8"), "weights: int8"));
  CHECK(holds(of("a/Llama-2-7b-MXFP4"), "weights: mxfp4"));
  CHECK(holds(of("--quantization modelopt --model a/Llama-2-7b-FP4"), "weights: nvfp4"));
  CHECK(
      holds(of("a/Llama-2-7b-quantized.w4a16 --quantization compressed-tensors"), "weights: int4"));
  for (const char* unsaid :
       {"a/Llama-2-7b --quantization compressed-tensors", "a/Llama-2-7b-GGUF"}) {
    const std::string text = of(unsaid);
    CHECK_MESSAGE(holds(text, "--set serving.weights=FORMAT"), unsaid);
    CHECK_FALSE(holds(text, "\n  weights:"));
  }
  CHECK(holds(of("a/Llama-2-7b-AWQ --dtype half"), "weights: int4"));
}

TEST_CASE("SGLang spreads experts over all tensor ranks, unless a size is written") {
  const auto of = [](const std::string& model, const std::string& more) {
    return text_of(
        import_engine("python3 -m sglang.launch_server --model-path " + model + " --tp 8 " + more,
                      "x.sh", "sglang", models, engines));
  };
  const std::string deepseek = "deepseek-ai/DeepSeek-V3", llama = "a/Llama-2-7b";
  const std::string replicas = of(deepseek, "--dp 8 --enable-dp-attention");
  for (const char* part : {"tp: 1", "dp: 8", "ep: 8", "devices: 8"})
    CHECK_MESSAGE(holds(replicas, part), part);
  CHECK(holds(of(deepseek, "--moe-a2a-backend deepep"), "ep: 8"));
  CHECK(holds(of(deepseek, "--enable-deepep-moe --ep-size 2"), "ep: 8"));
  CHECK(holds(of(deepseek, "--dp 2 --enable-dp-attention --ep-size 4"), "ep: 4"));
  CHECK_FALSE(holds(of(deepseek, "--moe-a2a-backend none"), "ep:"));
  CHECK_FALSE(holds(of(llama, "--dp 8 --enable-dp-attention"), "ep:"));
  CHECK(holds(of("a/banana", "--dp 8 --enable-dp-attention"), "--set plan.ep=8"));
}

TEST_CASE("of several launches the first is read, and the others are named") {
  const std::string text =
      text_of(import_engine("vllm serve a/Llama-2-7b --tensor-parallel-size 8 &\n"
                            "vllm serve deepseek-ai/DeepSeek-V3 --port 8001 --max-num-seqs 4 &\n"
                            "vllm serve a/Llama-2-7b --headless --data-parallel-start-rank 4\n",
                            "x.sh", "vllm", models, engines));
  for (const char* part : {"model: llama-2-7b", "tp: 8", "devices: 8",
                           "Left out: serve deepseek-ai/DeepSeek-V3 --port 8001"})
    CHECK_MESSAGE(holds(text, part), part);
  CHECK_FALSE(holds(text, "max_num_seqs"));
  CHECK_FALSE(holds(text, "--headless"));
}

TEST_CASE("beginnings of names, short names and counts with letters, as vLLM reads them") {
  const std::string text = text_of(import_engine(
      "vllm serve a/Llama-2-7b --tensor-parallel 4 -q fp8 --max-num-batched-tokens 8K", "x.sh",
      "vllm", models, engines));
  for (const char* part : {"tp: 4", "weights: fp8", "max_num_batched_tokens: 8192"})
    CHECK_MESSAGE(holds(text, part), part);
  const std::string several = text_of(
      import_engine("vllm serve a/Llama-2-7b -tp 1 --data-parallel 4 --max-num-batched-tokens 8k",
                    "x.sh", "vllm", models, engines));
  CHECK(holds(several, "max_num_batched_tokens: 8000"));
  CHECK(holds(several, "Left out: --data-parallel 4"));
}

TEST_CASE("two dashes end the flags, and what follows them is left out") {
  for (const char* script :
       {"vllm serve m -tp 2 -- 8 --seed 3", "docker run vllm/vllm-openai:v0.6.3 -tp 2 --",
        "vllm serve m -tp 2 ---", "vllm serve m -tp 2 - -- -"}) {
    const std::string text = text_of(import_engine(script, "x.sh", "vllm", models, engines));
    CHECK_MESSAGE(holds(text, "tp: 2"), script);
  }
  const std::string text =
      text_of(import_engine("vllm serve m -tp 2 -- 8", "x.sh", "vllm", models, engines));
  CHECK(holds(text, "Left out: 8: stands after --"));
}

TEST_CASE("a word that holds the engine's name many times is read once") {
  std::string word = "vllm serve ";
  for (int i = 0; i < 250'000; ++i) word += "vllm";  // in quadratic time: minutes
  const std::string text =
      text_of(import_engine(word + ":v0.6.3 -tp 2", "x.sh", "vllm", models, engines));
  CHECK(holds(text, "stack: vllm-0.6"));
}

TEST_CASE("a size that the script takes from elsewhere is missing; a type of numbers is read") {
  const auto open = import_engine(
      "vllm serve deepseek-ai/DeepSeek-V3 --tensor-parallel-size \"$TP\" --max-num-seqs 8 --seed "
      "$SEED\n",
      "serve.sh", "vllm", models, engines);
  CHECK(holds(text_of(open), "tp: REPLACE"));
  CHECK(holds(text_of(open), "--tensor-parallel-size: the script leaves $TP open"));
  CHECK(holds(text_of(open), "max_num_seqs: 8"));
  CHECK(holds(text_of(open), "devices: REPLACE"));
  const auto weights = [](const std::string& more) {
    return text_of(import_engine("vllm serve a/llama-2-7b -tp 1 " + more + "\n", "x.sh", "vllm",
                                 models, engines));
  };
  CHECK(holds(weights("--dtype float32"), "weights: fp32"));
  CHECK(holds(weights("--dtype half"), "weights: fp16"));
  CHECK(holds(weights("--quantization fp8 --dtype half"), "weights: fp8"));
}

TEST_CASE("launches of two pools come back as a plan with both") {
  auto s = served::scenario("input_tokens: 1024, output_tokens: 256, concurrency: 64",
                            "llama-3.1-8b", "dgx-h100", 16,
                            "{disaggregation: {prefill: {tp: 4, dp: 2}, decode: {tp: 8, dp: 1}}}");
  for (const char* engine : {"vllm-0.11", "sglang-0.5"}) {
    s.serving.engine.name = engine;
    const std::string target = std::string(engine).substr(0, std::string(engine).find('-'));
    const std::string text =
        text_of(import_engine(engine_launch(s, sizes_of(s), target).text, "x.sh", target, models,
                              {"sglang-0.5", "vllm-0.11"}));
    for (const char* part : {"disaggregation:", "prefill:\n      tp: 4", "decode:\n      tp: 8",
                             "devices: 16", "dp: 2"})
      CHECK_MESSAGE(holds(text, part), engine << ": " << part << text);
    CHECK_FALSE(holds(text, "Left out"));
  }
  const std::string named = text_of(import_engine(
      "python3 -m sglang.launch_server --model-path m --tp 8 --disaggregation-mode decode &\n"
      "python3 -m sglang.launch_server --model-path m --tp 2 --disaggregation-mode prefill\n",
      "x.sh", "sglang", models, engines));
  CHECK(holds(named, "prefill:\n      tp: 2"));
  CHECK(holds(named, "decode:\n      tp: 8"));
  CHECK(holds(named, "devices: 10"));
}
