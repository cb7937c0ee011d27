// Formats of weights by the names of checkpoints and by engines' words.
#include "planner/frameworks/checkpoint_format.hpp"

#include <doctest/doctest.h>

namespace checkpoint_format_test {

namespace {

// "-" where nothing is known, "?" where the format is none of ours.
std::string shown(const std::optional<planner::NamedFormat>& format) {
  return !format ? "-" : format->weights.empty() ? "?" : format->weights;
}
std::string named(const char* name) { return shown(planner::format_in_name(name)); }
std::string quantized(const char* word, const char* name) {
  return shown(planner::format_of_quantization(word, name));
}

}  // namespace

TEST_CASE("a checkpoint's name states its width") {
  CHECK(named("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int8") == "int8");
  CHECK(named("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4") == "int4");
  CHECK(named("a/Llama-3.1-8B-Instruct-bnb-4bit") == "int4");
  CHECK(named("a/Llama-3.1-8B-Instruct-quantized.w4a16") == "int4");
  CHECK(named("a/Llama-3.1-8B-Instruct-quantized.w8a8") == "int8");
  CHECK(named("a/Llama-3.1-8B-Instruct-FP8-dynamic") == "fp8");
  CHECK(named("a/Llama-3.3-70B-Instruct-MXFP4") == "mxfp4");
  CHECK(named("a/gpt-oss-120b-w-mxfp4-a-fp8") == "mxfp4");
  CHECK(named("a/DeepSeek-R1-FP4") == "nvfp4");
  CHECK(named("a/Llama-3-8B-Instruct-AQLM-2Bit-1x16") == "?");
  CHECK(named("a/Llama-3.1-8B-Instruct-GGUF") == "?");
  CHECK(named("a/Llama-3.1-8B-Instruct-GGUF:Q4_K_M") == "int4");
  CHECK(named("meta-llama/Llama-3.1-8B-Instruct") == "-");
}

TEST_CASE("an engine's word decides, or leaves it to the checkpoint's name") {
  CHECK(quantized("compressed-tensors", "a/m-quantized.w4a16") == "int4");
  CHECK(quantized("compressed-tensors", "a/m-quantized.w8a8") == "int8");
  CHECK(quantized("compressed-tensors", "a/m-FP8") == "fp8");
  CHECK(quantized("compressed-tensors", "a/m") == "?");
  CHECK(quantized("modelopt", "a/m") == "fp8");
  CHECK(quantized("modelopt", "a/m-FP4") == "nvfp4");
  CHECK(quantized("modelopt_fp4", "a/m") == "nvfp4");
  CHECK(quantized("bitsandbytes", "a/m") == "int4");
  CHECK(quantized("bitsandbytes", "a/m-bnb-8bit") == "int8");
  CHECK(quantized("gptq", "a/m-GPTQ-Int8") == "int8");
  CHECK(quantized("fp8", "a/m-AWQ") == "fp8");
  CHECK(quantized("banana", "a/m-AWQ") == "-");
}

}  // namespace checkpoint_format_test
