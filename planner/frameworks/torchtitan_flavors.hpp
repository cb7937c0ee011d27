// The models that torchtitan has, beside ours: [model] name and flavor of its TOML, and the module
// that builds the same model in its Python configuration.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "costmodel/model/model_spec.hpp"

namespace planner {

// Sizes as in torchtitan/models/{llama3,qwen3,deepseek_v3}/__init__.py, whose dictionaries of
// flavors a TOML names.
struct TorchtitanFlavor {
  std::string_view name;    // "llama3"
  std::string_view flavor;  // "8B"
  std::string_view model;   // ours, of configs/models
  std::int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, ffn_hidden = 0, vocab = 0;
  std::int64_t experts = 0, top_k = 0, expert_ffn_hidden = 0;
};

std::span<const TorchtitanFlavor> torchtitan_flavors();

// The flavor that has the operators of this model; null when torchtitan has none.
const TorchtitanFlavor* flavor_of(const costmodel::ModelSpec& model);

// The flavor of this name in a configuration; null for any other.
const TorchtitanFlavor* flavor_named(std::string_view name, std::string_view flavor);

// The settings of a configuration that torchtitan ships, as "field=value field=value"; empty for
// one that is not known here.
std::string_view shipped_settings(std::string_view config);

}  // namespace planner
