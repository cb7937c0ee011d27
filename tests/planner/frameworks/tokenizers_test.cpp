// Vocabularies by a tokenizer's name.
#include "planner/frameworks/tokenizers.hpp"

#include <doctest/doctest.h>

using planner::vocabulary_of;

TEST_CASE("the longest name that stands in a tokenizer's decides") {
  CHECK(vocabulary_of("meta-llama/Llama-3.1-8B-Instruct") == 128'256);
  CHECK(vocabulary_of("Qwen/Qwen2.5-7B-Instruct") == 152'064);
  CHECK(vocabulary_of("Qwen/Qwen2.5-0.5B") == 151'936);
  CHECK(vocabulary_of("/checkpoints/mixtral-hf/tokenizer.model") == 32'000);
  CHECK(vocabulary_of("nvidia/Nemotron-Mini-4B-Instruct") == 256'000);
  CHECK(vocabulary_of("nvidia/NVIDIA-Nemotron-Nano-9B-v2") == 131'072);
  CHECK(vocabulary_of("nvidia/Llama-3.1-Nemotron-70B") == 128'256);
  CHECK(vocabulary_of("nvidia/Llama-3_3-Nemotron-Super-49B-v1") == 128'256);
  CHECK(vocabulary_of("/data/utils/nemotron_2_256k.model") == 256'000);
  CHECK(vocabulary_of("nvidia/nemotron-3-8b-base-4k") == 256'000);
  CHECK_FALSE(vocabulary_of("/data/tokenizer.model").has_value());
  CHECK(vocabulary_of("deepseek-ai/DeepSeek-R1-Distill-Llama-8B") == 128'256);
  CHECK(vocabulary_of("deepseek-ai/DeepSeek-R1") == 129'280);
  CHECK(vocabulary_of("bigscience/tokenizer") == 250'880);
  CHECK(vocabulary_of("codellama/CodeLlama-7b-hf") == 32'016);
  CHECK_FALSE(vocabulary_of("").has_value());
}
