// The keys of a model: what is written of every model is listed, and families choose the rest.
#include "costmodel/model/model_keys.hpp"

#include <doctest/doctest.h>

#include <set>

#include "costmodel/config/search_path.hpp"
#include "costmodel/config/yaml.hpp"
#include "costmodel/model/model_reader.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace model_keys_test {

using namespace costmodel;

namespace {

ModelSpec read(const char* text) { return read_model(parse_yaml(text, "m.yaml"), ""); }

}  // namespace

TEST_CASE("each key is listed once, and every key of every model is") {
  std::set<std::string> names;
  for (const KeyText& key : model_keys()) CHECK(names.insert(key.name).second);
  for (const auto& name : config_names(fixtures::configs(), "models")) {
    CAPTURE(name);
    const auto found = resolve_config(fixtures::configs(), "models", scalar_value(name));
    for (const Value& map : {found.value, to_value(read_model(found.value, name))}) {
      for (const auto& entry : map.entries) {
        CAPTURE(entry.key);
        CHECK(names.contains("model." + entry.key));
      }
    }
  }
}

TEST_CASE("a family's usual choices, and those told that change the result") {
  const ModelSpec gpt = read("{kind: gpt, layers: 2, hidden: 64, heads: 4}");
  CHECK(gpt.ffn_hidden == 256);
  CHECK(gpt.positions == Positions::learned);
  CHECK(gpt.linear_bias);
  const ModelSpec llama = read("{kind: llama, layers: 2, hidden: 4096, heads: 32, vocab: 128256}");
  CHECK(llama.kv_heads == 8);
  CHECK(llama.ffn_hidden == 11'008);
  CHECK(llama.activation == ActivationFunction::silu);
  CHECK(llama.positions == Positions::rotary);
  CHECK(llama.assumed == std::vector<std::string>{"kv_heads 8", "ffn_hidden 11008",
                                                  "gated_mlp true", "tie_embeddings false",
                                                  "linear_bias false", "dropout 0"});
  const ModelSpec mamba = read("{kind: mamba, layers: 2, hidden: 128}");
  CHECK(mamba.heads == 4);
  CHECK(mamba.state_size == 128);
}

TEST_CASE("a range may depend on what is already read") {
  const auto fault = [](const char* text) { return fixtures::config_error([&] { read(text); }); };
  CHECK(fixtures::contains(
      fault("{kind: moe, layers: 2, hidden: 64, heads: 4, experts: 4, top_k: 1, ffn_hidden: 64, "
            "first_dense_layers: 3}"),
      "first_dense_layers: 3 is out of range; allowed: whole numbers 0 to 2"));
  CHECK(fixtures::contains(fault("{kind: gpt, layers: 2, hidden: 64, heads: 4, experts: 4}"),
                           "has no key 'experts'"));
}

}  // namespace model_keys_test
