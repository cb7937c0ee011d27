// What a quantization_config keeps in 16 bits, as published files name it.
#include "costmodel/model/hf_checkpoint.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

#include "costmodel/config/yaml.hpp"

namespace hf_checkpoint_test {

using namespace costmodel;

namespace {

StoredWeights stored(const std::string& kept, bool experts, std::int64_t layers = 4) {
  const Value text = parse_yaml("{quant_method: fp8, " + kept + "}", "config.json");
  return stored_weights(text, layers, experts);
}

}  // namespace

TEST_CASE("nothing is kept where nothing is named, or no more than the head") {
  for (const char* const kept : {"ignore: []", "ignore: [lm_head]", "ignored_layers: null"}) {
    const StoredWeights w = stored(kept, false);
    CHECK(w.format == "fp8");
    CHECK((!w.attention && !w.dense && w.layers == 0));
  }
}

// meta-llama/Llama-3.1-405B-FP8: attention in all layers, the MLPs of the first and the last.
TEST_CASE("modules that are listed one by one") {
  std::string names = "lm_head";
  for (int layer = 0; layer < 4; ++layer) {
    names += fmt::format(", model.layers.{}.self_attn.o_proj", layer);
    if (layer == 0 || layer == 3) names += fmt::format(", model.layers.{}.mlp.down_proj", layer);
  }
  const StoredWeights w = stored("modules_to_not_convert: [" + names + "]", false);
  CHECK((w.attention && !w.dense && w.layers == 1));
  CHECK_FALSE(stored("ignore: [model.layers.2.self_attn.o_proj]", false).attention);
}

// moonshotai/Kimi-K2-Thinking: routed experts alone are narrow.
TEST_CASE("expressions, with alternatives in brackets") {
  const std::string all =
      "ignore: [lm_head, 're:.*self_attn.*', 're:.*shared_experts.*', "
      "'re:.*mlp\\.(gate|up|gate_up|down)_proj.*']";
  const StoredWeights w = stored(all, true);
  CHECK((w.attention && w.dense && w.layers == 0));
  CHECK_FALSE(stored("ignore: ['re:.*self_attn.*', 're:.*mlp\\.(gate|up)_proj.*']", true).dense);
}

// openai/gpt-oss, and TensorRT Model Optimizer's lists.
TEST_CASE("stars for any characters") {
  CHECK(stored("modules_to_not_convert: ['model.layers.*.self_attn', lm_head]", true).attention);
  CHECK(stored("exclude_modules: ['*self_attn*']", true).attention);
}

TEST_CASE("what names nothing, or is no name, keeps nothing") {
  for (const std::string& kept :
       {std::string("ignore: ['']"), std::string("ignore: [null, {a: 1}, [b]]"),
        "ignore: ['re:" + std::string(30'000, '(') + std::string(30'000, ')') + "']"})
    CHECK_FALSE(stored(kept, false).attention);
}

TEST_CASE("a file that names more than can be compared keeps nothing") {
  std::string names;
  for (int i = 0; i < 100; ++i) names += "self_attn, ";
  CHECK(stored("ignore: [" + names + "x]", false, 1000).attention);
  CHECK_FALSE(stored("ignore: [" + names + "x]", false, 100'000).attention);
}

}  // namespace hf_checkpoint_test
