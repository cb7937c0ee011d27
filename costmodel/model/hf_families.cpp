#include "costmodel/model/hf_families.hpp"

#include "costmodel/model/hf_hooks.hpp"

namespace costmodel {

namespace {

// Rows that families share. The usual values are the defaults of the transformers classes (4.57),
// which config.json may omit.

// RMSNorm, rotary positions, a gated MLP, no biases.
constexpr std::string_view llama_rows =
    "kind:llama layers=num_hidden_layers hidden=hidden_size heads=num_attention_heads "
    "vocab=vocab_size kv_heads=num_key_value_heads:heads head_dim=head_dim:h/a "
    "ffn_hidden=intermediate_size gated_mlp:true activation=hidden_act:silu "
    "tie_embeddings=tie_word_embeddings:false positions:rotary max_positions:0 "
    "rotary_base=rope_theta:10000.0 rotary_percent=partial_rotary_factor:1.0 "
    "normalization:rmsnorm linear_bias:false qkv_bias:false "
    "dropout=attention_dropout|hidden_dropout:0.0";

// attention_bias of queries, keys, values and the output; of the first three alone.
constexpr std::string_view biased = "qkv_bias=attention_bias:false !attention_bias";
constexpr std::string_view qkv_biased = "qkv_bias=attention_bias:false";

// Experts in every layer, each as wide as moe_intermediate_size.
constexpr std::string_view mixture =
    "kind:moe top_k=num_experts_per_tok expert_ffn_hidden=moe_intermediate_size";

// DeepSeek-V3's: the first layers dense, shared experts, groups, a bias for each expert.
constexpr std::string_view deepseek_experts =
    "kind:moe experts=n_routed_experts top_k=num_experts_per_tok "
    "expert_ffn_hidden=moe_intermediate_size shared_experts=n_shared_experts:0 "
    "moe_every=moe_layer_freq:1 first_dense_layers=first_k_dense_replace:0 "
    "router_score=scoring_func:sigmoid router_bias=topk_method:noaux_tc "
    "router_scaling=routed_scaling_factor:1.0 expert_groups=n_group? "
    "expert_groups_per_token=topk_group? mtp_layers=num_nextn_predict_layers";

// All heads have keys and values of their own; q_lora_rank null: queries from the hidden state.
constexpr std::string_view latent =
    "-kv_heads -head_dim num_key_value_heads head_dim q_lora_rank=q_lora_rank:0 "
    "kv_lora_rank=kv_lora_rank qk_head_dim=qk_nope_head_dim "
    "qk_pos_emb_head_dim=qk_rope_head_dim v_head_dim=v_head_dim";

// LayerNorm, a learned table, no gate, biases everywhere, embeddings tied.
constexpr std::string_view gpt =
    "kind:gpt layers=num_hidden_layers|n_layer hidden=hidden_size|n_embd "
    "heads=num_attention_heads|n_head head_dim:h/a kv_heads:heads vocab=vocab_size "
    "ffn_hidden=intermediate_size:4h gated_mlp:false activation=hidden_act:gelu "
    "tie_embeddings=tie_word_embeddings:true positions:learned "
    "max_positions=max_position_embeddings:2048 normalization:layernorm linear_bias:true "
    "qkv_bias:true";
constexpr std::string_view rotating =
    "positions:rotary max_positions:0 rotary_base=rope_theta:10000.0";
constexpr std::string_view gpt2_names =
    "layers=n_layer|num_hidden_layers hidden=n_embd|hidden_size heads=n_head|num_attention_heads "
    "ffn_hidden=n_inner|intermediate_size:4h "
    "max_positions=n_positions|max_position_embeddings:1024 "
    "dropout=resid_pdrop|attn_pdrop|embd_pdrop:0.1";

constexpr std::string_view t5 =
    "kind:t5 encoder_layers=num_layers decoder_layers=num_decoder_layers:encoder_layers "
    "hidden=d_model heads=num_heads kv_heads:heads head_dim=d_kv:64 ffn_hidden=d_ff "
    "vocab=vocab_size tie_embeddings=tie_word_embeddings:true positions:relative max_positions:0 "
    "normalization:rmsnorm linear_bias:false qkv_bias:false dropout=dropout_rate:0.1";

constexpr std::string_view scans =
    "kind:mamba layers=num_hidden_layers hidden=hidden_size vocab=vocab_size "
    "tie_embeddings=tie_word_embeddings:true conv_kernel=conv_kernel:4 normalization:rmsnorm "
    "linear_bias:false qkv_bias:false dropout:0 hidden_act !use_bias !use_conv_bias";

constexpr std::string_view olmo2 = "norm_placement:branch qk_norm:true qk_norm_whole:true";
constexpr std::string_view gemma =
    "hidden_act activation=hidden_activation:gelu_pytorch_tanh norm_placement:both "
    "layernorm_1p:true sliding_window=sliding_window:4096 head_dim=head_dim:256 "
    "tie_embeddings=tie_word_embeddings:true attention_softcap=attn_logit_softcapping:0.0 "
    "logits_softcap=final_logit_softcapping:0.0";
constexpr std::string_view qwen3 = "head_dim=head_dim:128 qk_norm:true";
constexpr std::string_view qwen3_experts =
    "kind:moe experts=num_experts top_k=num_experts_per_tok "
    "expert_ffn_hidden=moe_intermediate_size";
constexpr std::string_view ernie =
    "linear_bias=use_bias:false qkv_bias=use_bias:false tie_embeddings=tie_word_embeddings:true";

// What HunYuan's files name and its class does not read, or reads for its loss.
constexpr std::string_view hunyuan_choices =
    "use_mixed_mlp_moe use_cla cla_share_factor norm_type mlp_bias moe_drop_tokens "
    "moe_random_routing_dropped_token group_limited_greedy n_group topk_group "
    "routed_scaling_factor";

// Three gated delta nets, then attention with a gate; of a mixture, experts in each layer.
constexpr std::string_view delta_net =
    "experts=num_experts head_dim=head_dim:256 ffn_hidden=moe_intermediate_size "
    "intermediate_size qk_norm:true attention_gate=attn_output_gate:true "
    "attention_pattern=full_attention_interval:4 linear_num_key_heads=linear_num_key_heads "
    "linear_num_value_heads=linear_num_value_heads linear_key_head_dim=linear_key_head_dim "
    "linear_value_head_dim=linear_value_head_dim conv_kernel=linear_conv_kernel_dim:4 "
    "mtp_layers=mtp_num_hidden_layers mamba_ssm_dtype mtp_use_dedicated_embeddings";

constexpr std::string_view granite =
    "embedding_multiplier=embedding_multiplier:1.0 residual_multiplier=residual_multiplier:1.0 "
    "attention_multiplier=attention_multiplier:1.0 logits_scaling=logits_scaling:1.0";

// Attention and MLP in parallel on one norm, which has no bias.
constexpr std::string_view cohere =
    "parallel_block:true shared_norm:true normalization:layernorm-no-bias "
    "tie_embeddings=tie_word_embeddings:true qk_norm=use_qk_norm:false "
    "qk_norm_whole=use_qk_norm:false";

constexpr HfFamily families[] = {
    {"llama", "LlamaForCausalLM", {llama_rows, biased, "linear_bias=mlp_bias:false"}},
    {"mistral", "MistralForCausalLM", {llama_rows, "sliding_window=sliding_window?"}},
    {"qwen2", "Qwen2ForCausalLM", {llama_rows, "qkv_bias:true"}, hf_qwen},
    {"qwen3", "Qwen3ForCausalLM", {llama_rows, biased, qwen3}, hf_qwen},
    {"mixtral",
     "MixtralForCausalLM",
     {llama_rows, mixture,
      "experts=num_local_experts expert_ffn_hidden=intermediate_size "
      "sliding_window=sliding_window?"}},
    {"qwen3_moe", "Qwen3MoeForCausalLM", {llama_rows, biased, qwen3, qwen3_experts}, hf_qwen_moe},
    {"deepseek_v2",
     "DeepseekV2ForCausalLM",
     {llama_rows, deepseek_experts, latent,
      "qkv_bias=attention_bias:false router_score=scoring_func:softmax "
      "router_bias=topk_method:greedy"}},
    {"deepseek_v3",
     "DeepseekV3ForCausalLM",
     {llama_rows, deepseek_experts, latent,
      "qkv_bias=attention_bias:false router_score=scoring_func:softmax"}},
    {"gpt2",
     "GPT2LMHeadModel",
     {gpt, gpt2_names, "activation=activation_function|hidden_act:gelu"}},
    {"gpt_neox",
     "GPTNeoXForCausalLM",
     {gpt, rotating, biased,
      "ffn_hidden=intermediate_size tie_embeddings=tie_word_embeddings:false "
      "qkv_bias=attention_bias:true rotary_base=rotary_emb_base|rope_theta:10000.0 "
      "rotary_percent=rotary_pct:0.25 parallel_block=use_parallel_residual:true "
      "attention_probs_dropout_prob hidden_dropout_prob "
      "dropout=attention_dropout|hidden_dropout:0.0"}},
    // Queries, keys and values are one product, gate and up are one; no biases.
    {"phi3",
     "Phi3ForCausalLM",
     {llama_rows,
      "attention_bias sliding_window=sliding_window? "
      "dropout=resid_pdrop|embd_pdrop|attention_dropout:0.0"}},
    {"gemma2",
     "Gemma2ForCausalLM",
     {llama_rows, biased, gemma, "attention_pattern=sliding_window_pattern:2"},
     hf_gemma},
    {"gemma3_text",
     "Gemma3ForCausalLM",
     {llama_rows, biased, gemma,
      "vocab=vocab_size:262208 heads=num_attention_heads:8 kv_heads=num_key_value_heads:4 "
      "qk_norm:true attention_pattern=sliding_window_pattern:6"},
     hf_gemma},
    {"olmo2", "Olmo2ForCausalLM", {llama_rows, biased, olmo2}},
    {"gpt_oss",
     "GptOssForCausalLM",
     {llama_rows, mixture, biased,
      "experts=num_local_experts expert_ffn_hidden=intermediate_size experts_per_token "
      "hidden_act activation:silu linear_bias:true qkv_bias=attention_bias:true "
      "attention_sinks:true sliding_window=sliding_window:4096 attention_pattern=layer_types:SF "
      "activation_clamp=swiglu_limit:7.0 glu_offset:1"}},
    {"qwen3_next", "Qwen3NextForCausalLM", {llama_rows, mixture, biased, delta_net}, hf_qwen_next},
    // Attention and MLP in parallel: 7B on one norm and with one head of keys and values, 40B and
    // 180B (new_decoder_architecture) on a norm each and with groups.
    {"falcon",
     "FalconForCausalLM",
     {gpt, rotating,
      "hidden=hidden_size ffn_hidden=ffn_hidden_size:4h linear_bias=bias:false "
      "qkv_bias=bias:false activation=activation:gelu rotary_percent=partial_rotary_factor:1.0 "
      "dropout=hidden_dropout|attention_dropout:0.0 !apply_residual_connection_post_layernorm"},
     hf_falcon},
    {"bloom",
     "BloomForCausalLM",
     {gpt,
      "hidden=hidden_size|n_embed ffn_hidden=n_inner:4h activation=activation_function:bloom_gelu "
      "positions:alibi max_positions:0 embedding_norm:true "
      "dropout=hidden_dropout|attention_dropout:0.0 !apply_residual_connection_post_layernorm"}},
    {"opt",
     "OPTForCausalLM",
     {gpt,
      "ffn_hidden=ffn_dim:4h linear_bias=enable_bias:true qkv_bias=enable_bias:true "
      "activation=activation_function:relu embedding_dim=word_embed_proj_dim? "
      "!layer_norm_elementwise_affine dropout=dropout|attention_dropout:0.1"},
     hf_opt},
    // Queries, keys and values without bias; every second layer with a window. attention_layers is
    // what attention_types means, written out.
    {"gpt_neo",
     "GPTNeoForCausalLM",
     {gpt,
      "layers=num_layers|num_hidden_layers heads=num_heads|num_attention_heads qkv_bias:false "
      "activation=activation_function:gelu_new attention_layers "
      "dropout=resid_dropout|embed_dropout|attention_dropout:0.0"},
     hf_gpt_neo},
    {"gpt_bigcode",
     "GPTBigCodeForCausalLM",
     {gpt, gpt2_names, "activation=activation_function:gelu_pytorch_tanh"},
     hf_multi_query},
    {"bert",
     "BertForMaskedLM",
     {gpt,
      "max_positions=max_position_embeddings:512 causal:false norm_placement:after "
      "embedding_norm:true token_types=type_vocab_size:2 !position_embedding_type "
      "dropout=hidden_dropout_prob|attention_probs_dropout_prob:0.1"},
     hf_bert},
    {"mamba",
     "MambaForCausalLM",
     {scans, "heads=intermediate_size? head_dim:1 state_size=state_size:16 rms_norm"},
     hf_mamba},
    {"mamba2",
     "Mamba2ForCausalLM",
     {scans,
      "tie_embeddings=tie_word_embeddings:false heads=num_heads:128 head_dim=head_dim:64 "
      "state_size=state_size:128 ssm_groups=n_groups:8 !rms_norm"},
     hf_mamba2},
    // Tied embeddings and ReLU; T5 1.1 and mT5 have an untied output projection and a gate.
    {"t5", "T5ForConditionalGeneration", {t5}, hf_t5},
    {"mt5",
     "MT5ForConditionalGeneration",
     {t5, "tie_embeddings=tie_word_embeddings:false"},
     hf_mt5},
    {"nemotron_h",
     "NemotronHForCausalLM",
     {llama_rows,
      "kind:hybrid -layers hybrid_override_pattern head_dim=attention_head_dim|head_dim "
      "gated_mlp:false activation=mlp_hidden_act:relu2 positions:none -rotary_base "
      "-rotary_percent linear_bias=mlp_bias:false qkv_bias=attention_bias:false "
      "dropout=attention_dropout:0.0"},
     hf_nemotron},
    {"kimi_k2", "KimiK2ForCausalLM", {llama_rows, deepseek_experts, latent, qkv_biased}},
    // The first layers are dense; the bias of attention is none of its output's.
    {"glm4_moe",
     "Glm4MoeForCausalLM",
     {llama_rows, deepseek_experts, qkv_biased,
      "head_dim=head_dim:128 qk_norm=use_qk_norm:false "
      "rotary_percent=partial_rotary_factor:0.5"}},
    {"dots1",
     "Dots1ForCausalLM",
     {llama_rows, deepseek_experts, biased,
      "qk_norm:true scoring_func router_score:sigmoid use_sliding_window sliding_window "
      "layer_types"}},
    {"ernie4_5", "Ernie4_5ForCausalLM", {llama_rows, "head_dim=head_dim:128", ernie}},
    {"ernie4_5_moe",
     "Ernie4_5_MoeForCausalLM",
     {llama_rows, ernie,
      "kind:moe experts=moe_num_experts top_k=moe_k expert_ffn_hidden=moe_intermediate_size "
      "shared_experts=moe_num_shared_experts:2 first_dense_layers=moe_layer_start_index:1 "
      "moe_every=moe_layer_interval:1 moe_norm_min moe_capacity moe_gate moe_use_aux_free "
      "router_score:softmax router_bias:true mtp_layers=num_nextn_predict_layers"},
     hf_ernie},
    {"olmo3",
     "Olmo3ForCausalLM",
     {llama_rows, biased, olmo2,
      "sliding_window=sliding_window:4096 attention_pattern=layer_types:SSSF"}},
    {"granite", "GraniteForCausalLM", {llama_rows, biased, granite, "linear_bias=mlp_bias:false"}},
    // A norm over all heads at once.
    {"minimax_m2",
     "MiniMaxM2ForCausalLM",
     {llama_rows, mixture,
      "experts=num_local_experts expert_ffn_hidden=intermediate_size head_dim=head_dim:128 "
      "qk_norm=use_qk_norm:true qk_norm_whole=use_qk_norm:true router_score=scoring_func:sigmoid "
      "router_bias=use_routing_bias:true attn_type_list qk_norm_type shared_intermediate_size "
      "mtp_layers=num_mtp_modules use_mtp mtp_transformer_layers"},
     hf_minimax},
    {"hunyuan_v1_moe",
     "HunYuanMoEV1ForCausalLM",
     {llama_rows, biased,
      "kind:moe experts=num_experts top_k=moe_topk:1 "
      "expert_ffn_hidden=moe_intermediate_size|intermediate_size "
      "shared_experts=num_shared_expert:1 first_dense_layers=moe_layer_num_skipped:0 "
      "head_dim=head_dim|attention_head_dim:h/a qk_norm=use_qk_norm:true",
      hunyuan_choices}},
    {"ministral3",
     "Ministral3ForCausalLM",
     {llama_rows, "head_dim=head_dim:128 sliding_window=sliding_window?"}},
    {"starcoder2",
     "Starcoder2ForCausalLM",
     {gpt, rotating,
      "kv_heads=num_key_value_heads:heads ffn_hidden=intermediate_size linear_bias=use_bias:true "
      "qkv_bias=use_bias:true activation=hidden_act:gelu_pytorch_tanh "
      "sliding_window=sliding_window? mlp_type norm_type "
      "dropout=residual_dropout|embedding_dropout|attention_dropout:0.0"}},
    {"seed_oss",
     "SeedOssForCausalLM",
     {llama_rows,
      "head_dim=head_dim:128 qkv_bias=attention_bias:true !attention_out_bias "
      "linear_bias=mlp_bias:false dropout=attention_dropout|residual_dropout:0.0"}},
    // Each fourth layer has no positions, which costs nothing.
    {"smollm3",
     "SmolLM3ForCausalLM",
     {llama_rows, biased,
      "linear_bias=mlp_bias:false tie_embeddings=tie_word_embeddings:true no_rope_layers "
      "no_rope_layer_interval"},
     hf_qwen},
    {"qwen2_moe",
     "Qwen2MoeForCausalLM",
     {llama_rows, mixture, "experts=num_experts qkv_bias:true"},
     hf_qwen2_moe},
    {"qwen2_5_vl_text", "Qwen2_5_VLTextModel", {llama_rows, "qkv_bias:true"}, hf_qwen},
    {"qwen3_vl_text", "Qwen3VLTextModel", {llama_rows, biased, qwen3}, hf_qwen},
    {"qwen3_vl_moe_text",
     "Qwen3VLMoeTextModel",
     {llama_rows, biased, qwen3, qwen3_experts},
     hf_qwen_moe},
    {"qwen3_5_text",
     "Qwen3_5ForCausalLM",
     {llama_rows, biased, delta_net, "-experts ffn_hidden=intermediate_size"}},
    {"qwen3_5_moe_text",
     "Qwen3_5MoeForCausalLM",
     {llama_rows, mixture, biased, delta_net},
     hf_shared_expert},
    {"olmoe",
     "OlmoeForCausalLM",
     {llama_rows, mixture, biased,
      "experts=num_experts expert_ffn_hidden=intermediate_size qk_norm:true qk_norm_whole:true "
      "clip_qkv"}},
    {"glm4",
     "Glm4ForCausalLM",
     {llama_rows, qkv_biased,
      "head_dim=head_dim:128 norm_placement:both rotary_percent=partial_rotary_factor:0.5"}},
};

// Of a model_type that is not known, fields as other families have them.
constexpr std::string_view guessed_experts =
    "kind:moe experts=num_experts|num_local_experts|n_routed_experts|moe_num_experts "
    "top_k=num_experts_per_tok|moe_topk|moe_k "
    "expert_ffn_hidden=moe_intermediate_size|intermediate_size shared_experts=n_shared_experts:0 "
    "first_dense_layers=first_k_dense_replace:0";

}  // namespace

HfModel HfFamily::read(const Value& map) const {
  HfTranslation file(map, model_type);
  file.read({rows.begin(), rows.end()});
  if (hook != nullptr) hook(file);
  return file.take();
}

std::span<const HfFamily> hf_families() { return families; }

HfFamily hf_guess(const Value& map, std::string_view model_type) {
  bool sparse = false;
  for (const char* const key :
       {"num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"})
    sparse = sparse || map.find(key) != nullptr;
  return {model_type, "", {llama_rows, biased, sparse ? guessed_experts : std::string_view()}};
}

}  // namespace costmodel
