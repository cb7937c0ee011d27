// The keys of a model: a table of records, each of one part of a model, and what a family usually
// chooses where a key is absent. model_reader.hpp reads the parts and checks them against one
// another.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "costmodel/config/key.hpp"
#include "costmodel/model/model_spec.hpp"

namespace costmodel {

// Keys that are read together. Where a family derives a size that is not written, it stays 0.
enum class ModelPart {
  kind,
  layers,
  hidden,
  heads,
  kv_heads,
  head_dim,
  value_size,
  windowed,  // what layers with a window have of their own
  ffn,
  mlp,
  vocab,
  position_table,  // absent_positions: not written
  positions,
  rotary,
  norms_and_biases,
  block,  // not of t5
  experts,
  expert_layers,  // which layers have experts, where no pattern does
  router,
  latent_rank,  // with which a model has the next
  latent_sizes,
  indexer,
  window,
  delta_net,
  state,  // of scans
  scan,
  rwkv,
  convolution,
  pattern,       // of a hybrid
  pattern_scan,  // of a hybrid's scans
  stacks,        // of t5
  towers,
  last
};

inline constexpr IntegerRange layer_counts{1, 100'000};
inline constexpr std::int64_t absent_positions = -1;

// Reads the keys of a part in their order.
void read_part(MapReader& reader, ModelPart part, ModelSpec& model);

// Takes the usual value of a size that is not written, and says so in `assumed`.
void assume(std::int64_t ModelSpec::*size, std::int64_t usual, std::string_view key,
            ModelSpec& model);
std::int64_t usual_ffn(const ModelSpec& model);
std::int64_t usual_vocab(const ModelSpec& model);

// Numbers that change neither time nor memory: read, written and exported by these rows.
struct ModelNumber {
  std::string_view name;
  double ModelSpec::*field;
  double usual;  // which is not written
  std::string_view help;
};
std::span<const ModelNumber> model_numbers();

bool is_model_key(std::string_view name);
const std::vector<std::string_view>& model_key_names();

// All of them in words ("model.kv_lora_rank").
std::vector<KeyText> model_keys();

}  // namespace costmodel
