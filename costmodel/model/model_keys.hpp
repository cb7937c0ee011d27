// The keys of a model as records, by who has them, and what a family usually chooses where a key
// is absent. model_reader.hpp reads them in their order and checks them against one another.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "costmodel/config/key.hpp"
#include "costmodel/model/model_spec.hpp"

namespace costmodel {

using ModelKeys = Keys<ModelSpec>;

inline constexpr IntegerRange layer_counts{1, 100'000};

// Sizes. Where a family derives a size that is not written, it stays 0.
const ModelKeys& kind_key();
const ModelKeys& layers_key();
const ModelKeys& hidden_key();
const ModelKeys& pattern_key();           // of a hybrid
const ModelKeys& pattern_scan_keys();     // of a hybrid's scans
const ModelKeys& encoder_decoder_keys();  // of t5
const ModelKeys& heads_key();
const ModelKeys& kv_heads_key();
const ModelKeys& head_dim_key();
const ModelKeys& latent_attention_key();  // that a model has if it has the next
const ModelKeys& latent_attention_keys();
const ModelKeys& state_key();  // of scans
const ModelKeys& scan_keys();
const ModelKeys& convolution_key();
const ModelKeys& window_keys();
const ModelKeys& delta_keys();
const ModelKeys& ffn_key();
const ModelKeys& vocab_key();

const ModelKeys& expert_keys();
const ModelKeys& expert_layer_keys();  // which layers have experts, where no pattern says so
const ModelKeys& router_keys();
const ModelKeys& mlp_keys();
const ModelKeys& positions_table_key();  // absent_positions: not written
const ModelKeys& positions_key();
const ModelKeys& rotary_keys();
const ModelKeys& norm_and_bias_keys();
const ModelKeys& block_keys();  // not of t5
const ModelKeys& last_keys();

inline constexpr std::int64_t absent_positions = -1;

// Takes the usual value of a size that is not written, and says so in `assumed`.
void assume(std::int64_t ModelSpec::*size, std::int64_t usual, std::string_view key,
            ModelSpec& model);
std::int64_t usual_ffn(const ModelSpec& model);
std::int64_t usual_vocab(const ModelSpec& model);

// All of them ("model.kv_lora_rank").
std::vector<KeyText> model_keys();

}  // namespace costmodel
