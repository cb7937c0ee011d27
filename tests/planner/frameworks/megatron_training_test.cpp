// Training keys from Megatron-LM's arguments.
#include "planner/frameworks/megatron_training.hpp"

#include <doctest/doctest.h>

#include "planner/frameworks/megatron_script.hpp"

namespace megatron_training_test {

namespace {

std::string training_key(const std::string& arguments, const std::string& key) {
  const auto run = planner::read_megatron_script("--seq-length 64 " + arguments, "x.sh");
  planner::MegatronImport in(run);
  planner::read_megatron_training(in, 1);
  const auto* value = in.job.scenario.find("training")->find(key);
  return value == nullptr ? "" : value->text;
}

}  // namespace

TEST_CASE("local layers without FlashAttention, and fp32, run attention as separate kernels") {
  const auto attention = [](const std::string& arguments) {
    const auto run = planner::read_megatron_script("--seq-length 64 " + arguments, "x.sh");
    planner::MegatronImport in(run);
    planner::read_megatron_training(in, 1);
    const auto* value = in.job.scenario.find("training")->find("stack")->find("attention");
    return value == nullptr ? "" : value->text;
  };
  CHECK(attention("--transformer-impl local") == "unfused");
  CHECK(attention("--bf16 --transformer-impl local --use-flash-attn").empty());
  CHECK(attention("--bf16 --transformer-impl transformer_engine").empty());
  CHECK(attention("--transformer-impl transformer_engine") == "unfused");
  CHECK(attention("--attention-backend unfused") == "unfused");
}

TEST_CASE("precisions: bf16 reduces in fp32 unless told otherwise, fp16 the other way round") {
  CHECK(training_key("", "precision") == "fp32");
  CHECK(training_key("--bf16", "gradient_precision") == "fp32");
  CHECK(training_key("--bf16 --grad-reduce-in-bf16", "gradient_precision") == "bf16");
  CHECK(training_key("--fp16", "gradient_precision") == "fp16");
  CHECK(training_key("--fp16 --accumulate-allreduce-grads-in-fp32", "gradient_precision") ==
        "fp32");
  CHECK(training_key("--bf16 --fp8-format hybrid", "precision") == "fp8");
  CHECK(training_key("--bf16 --fp8-format e4m3 --fp8-recipe mxfp8", "precision") == "mxfp8");
  CHECK(training_key("--bf16 --fp4-format e2m1", "precision") == "nvfp4");
  CHECK(training_key("--bf16 --exp-avg-dtype bf16", "moment_precision").empty());
  CHECK(training_key("--use-precision-aware-optimizer --exp-avg-dtype bf16", "moment_precision") ==
        "bf16");
}

TEST_CASE("the loss is the native fusion, Transformer Engine's or none") {
  CHECK(training_key("", "loss") == "unfused");
  CHECK(training_key("--cross-entropy-fusion-impl te", "loss") == "unfused");
  CHECK(training_key("--cross-entropy-loss-fusion", "loss").empty());
  CHECK(training_key("--cross-entropy-loss-fusion --cross-entropy-fusion-impl native", "loss")
            .empty());
  CHECK(training_key("--cross-entropy-loss-fusion --cross-entropy-fusion-impl te", "loss") == "te");
  CHECK_THROWS_WITH_AS(
      training_key("--cross-entropy-loss-fusion --cross-entropy-fusion-impl liger", "loss"),
      doctest::Contains("is no loss of Megatron-LM"), costmodel::ConfigError);
}

TEST_CASE("a run without a global batch is missing one, unless the world is known") {
  CHECK(training_key("", "global_batch") == "REPLACE");
  CHECK(training_key("--global-batch-size 32", "global_batch") == "32");
}

}  // namespace megatron_training_test
