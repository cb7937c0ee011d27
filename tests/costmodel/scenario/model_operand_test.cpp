#include "costmodel/scenario/model_operand.hpp"

#include <doctest/doctest.h>

#include "costmodel/config/yaml.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace model_operand_test {

using namespace costmodel;
using fixtures::config_error;
using fixtures::contains;

TEST_CASE("the batch is 4 Mi tokens, within 1 and 16 sequences a device, as many on each") {
  CHECK(usual_batch(4096, 64) == 1024);
  CHECK(usual_batch(8192, 64) == 512);
  CHECK(usual_batch(4096, 2) == 32);
  CHECK(usual_batch(4096, 2048) == 2048);
  CHECK(usual_batch(131'072, 64) == 64);
  for (const int devices : {1, 3, 24, 100, 1000}) CHECK(usual_batch(4096, devices) % devices == 0);
}

TEST_CASE("a model's file is not a scenario's") {
  const auto of = [](const char* yaml) { return is_model(parse_yaml(yaml, "f.yaml")); };
  CHECK(of("{model_type: llama, hidden_size: 64}"));
  CHECK(of("{kind: llama, layers: 2}"));
  CHECK(of("{base: llama-3-8b, layers: 2}"));
  CHECK_FALSE(of("{model: llama-3-8b}"));
  CHECK_FALSE(of("{cluster: selene, training: {}}"));
  CHECK_FALSE(of("[1, 2]"));
}

TEST_CASE("an operand is a file, a scenario's name or a model's") {
  const auto& path = fixtures::configs();
  CHECK(operand_file("tiny-gpt-cpu", path) == scenario_file("tiny-gpt-cpu", path));
  CHECK(contains(operand_file("meta-llama/Llama-3.1-8B", path), "models/llama-3.1-8b.yaml"));
  CHECK(contains(config_error([&] { operand_file("70b", path); }),
                 "'70b' may be several models; name one of llama-2-70b, llama-3-70b"));
  CHECK(contains(config_error([&] { operand_file("llama-3-8x", path); }),
                 "no scenario or model of that name; did you mean 'llama-3-8b'?"));
}

TEST_CASE("what is not given is assumed, and what is given stays") {
  const auto assumed = [](const std::string& yaml) {
    Value root = parse_yaml(yaml, "f.yaml");
    assume_training(root, fixtures::configs());
    return read_scenario(root, "f", fixtures::configs());
  };
  const Scenario all = assumed("{model: llama-3-8b, cluster: {base: dgx-h100, devices: 8}}");
  CHECK(all.training.sequence == 4096);
  CHECK(all.training.global_batch == usual_batch(4096, 8));
  CHECK(all.training.precision == Precision::bf16);
  REQUIRE(all.training.assumed.size() == 4);
  CHECK(contains(all.training.assumed[0], "sequence 4096 (none given; --sequence N)"));
  const Scenario some =
      assumed("{model: gpt2, cluster: {base: dgx-v100, devices: 8}, training: {global_batch: 24}}");
  CHECK(some.training.global_batch == 24);
  CHECK(some.training.sequence == 1024);              // GPT-2's learned positions
  CHECK(some.training.precision == Precision::fp16);  // a V100 has no bf16
  CHECK(some.training.assumed.size() == 3);
}

}  // namespace model_operand_test
