#include "costmodel/config/checkpoints.hpp"

#include <doctest/doctest.h>

using namespace costmodel;

TEST_CASE("a checkpoint has the sizes of a model under another name") {
  const Checkpoint* coder = checkpoint_called("qwen2.5-coder-7b-instruct");
  REQUIRE(coder != nullptr);
  CHECK(coder->sizes_of == "Qwen2-7B");
  CHECK_FALSE(coder->towers);
  REQUIRE(checkpoint_called("GLM-4.5V") != nullptr);
  CHECK(checkpoint_called("GLM-4.5V")->towers);
  CHECK(checkpoint_called("Qwen2.5-7") == nullptr);
  CHECK(checkpoint_called("GLM-4.5") == nullptr);
}

TEST_CASE("a number that goes on is another model's") {
  CHECK(checkpoint_called("DeepSeek-R1") != nullptr);
  CHECK(checkpoint_called("DeepSeek-R12") == nullptr);
  REQUIRE(checkpoint_called("DeepSeek-R1-Distill-Other") != nullptr);
  CHECK(checkpoint_called("DeepSeek-R1-Distill-Other")->sizes_of.empty());
}
