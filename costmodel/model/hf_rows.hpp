// Rows that families of Hugging Face share, in the form that hf_translation.hpp reads. The usual
// values are the defaults of the transformers classes (4.57), which config.json may omit. Internal
// to costmodel.
#pragma once

#include <string_view>

namespace costmodel {

// RMSNorm, rotary positions, a gated MLP, no biases.
inline constexpr std::string_view llama_rows =
    "kind:llama layers=num_hidden_layers hidden=hidden_size heads=num_attention_heads "
    "vocab=vocab_size kv_heads=num_key_value_heads:heads head_dim=head_dim:h/a "
    "ffn_hidden=intermediate_size gated_mlp:true activation=hidden_act:silu "
    "tie_embeddings=tie_word_embeddings:false positions:rotary max_positions:0 "
    "rotary_base=rope_theta:10000.0 rotary_percent=partial_rotary_factor:1.0 "
    "normalization:rmsnorm linear_bias:false qkv_bias:false "
    "dropout=attention_dropout|hidden_dropout:0.0";

// attention_bias of queries, keys, values and the output; of the first three alone.
inline constexpr std::string_view biased_rows = "qkv_bias=attention_bias:false !attention_bias";
inline constexpr std::string_view qkv_biased_rows = "qkv_bias=attention_bias:false";

// Experts in every layer, each as wide as moe_intermediate_size.
inline constexpr std::string_view mixture_rows =
    "kind:moe top_k=num_experts_per_tok expert_ffn_hidden=moe_intermediate_size";

// DeepSeek-V3's: the first layers dense, shared experts, groups, a bias for each expert.
inline constexpr std::string_view deepseek_rows =
    "kind:moe experts=n_routed_experts top_k=num_experts_per_tok "
    "expert_ffn_hidden=moe_intermediate_size shared_experts=n_shared_experts:0 "
    "first_dense_layers=first_k_dense_replace:0 moe_every=moe_layer_freq:1 "
    "router_score=scoring_func:sigmoid router_bias=topk_method:noaux_tc "
    "router_scaling=routed_scaling_factor:1.0 expert_groups=n_group? "
    "expert_groups_per_token=topk_group? mtp_layers=num_nextn_predict_layers";

// All heads have keys and values of their own; q_lora_rank null: queries from the hidden state.
// Their qk_head_dim, which transformers writes, is with the rotated columns, ours without.
inline constexpr std::string_view latent_rows =
    "-kv_heads -head_dim num_key_value_heads head_dim qk_head_dim q_lora_rank=q_lora_rank:0 "
    "kv_lora_rank=kv_lora_rank qk_head_dim=qk_nope_head_dim "
    "qk_pos_emb_head_dim=qk_rope_head_dim v_head_dim=v_head_dim";

// LayerNorm, a learned table, no gate, biases everywhere, embeddings tied.
inline constexpr std::string_view gpt_rows =
    "kind:gpt layers=num_hidden_layers|n_layer hidden=hidden_size|n_embd "
    "heads=num_attention_heads|n_head head_dim:h/a kv_heads:heads vocab=vocab_size "
    "ffn_hidden=intermediate_size:4h gated_mlp:false activation=hidden_act:gelu "
    "tie_embeddings=tie_word_embeddings:true positions:learned "
    "max_positions=max_position_embeddings:2048 normalization:layernorm linear_bias:true "
    "qkv_bias:true";
inline constexpr std::string_view rotating_rows =
    "positions:rotary max_positions:0 rotary_base=rope_theta:10000.0";
inline constexpr std::string_view gpt2_rows =
    "layers=n_layer|num_hidden_layers hidden=n_embd|hidden_size heads=n_head|num_attention_heads "
    "ffn_hidden=n_inner|intermediate_size:4h "
    "max_positions=n_positions|max_position_embeddings:1024 "
    "dropout=resid_pdrop|attn_pdrop|embd_pdrop:0.1";

// Norms after the residuals, no causal mask.
inline constexpr std::string_view bert_rows =
    "max_positions=max_position_embeddings:512 causal:false norm_placement:after "
    "embedding_norm:true token_types=type_vocab_size:2 !position_embedding_type "
    "dropout=hidden_dropout_prob|attention_probs_dropout_prob:0.1";

inline constexpr std::string_view t5_rows =
    "kind:t5 encoder_layers=num_layers decoder_layers=num_decoder_layers:encoder_layers "
    "hidden=d_model heads=num_heads kv_heads:heads head_dim=d_kv:64 ffn_hidden=d_ff "
    "vocab=vocab_size tie_embeddings=tie_word_embeddings:true positions:relative max_positions:0 "
    "normalization:rmsnorm linear_bias:false qkv_bias:false dropout=dropout_rate:0.1";

inline constexpr std::string_view scans_rows =
    "kind:mamba layers=num_hidden_layers hidden=hidden_size vocab=vocab_size "
    "tie_embeddings=tie_word_embeddings:true conv_kernel=conv_kernel:4 normalization:rmsnorm "
    "linear_bias:false qkv_bias:false dropout:0 hidden_act !use_bias !use_conv_bias";

// Norms of queries and keys over all heads.
inline constexpr std::string_view across_heads_rows = "qk_norm:true qk_norm_whole:true";
inline constexpr std::string_view olmo2_rows = "norm_placement:branch";
inline constexpr std::string_view gemma_rows =
    "hidden_act activation=hidden_activation:gelu_pytorch_tanh norm_placement:both "
    "layernorm_1p:true sliding_window=sliding_window:4096 head_dim=head_dim:256 "
    "tie_embeddings=tie_word_embeddings:true attention_softcap=attn_logit_softcapping:0.0 "
    "logits_softcap=final_logit_softcapping:0.0";
// Gains as they are; layers without a window have other sizes (hf_gemma4).
inline constexpr std::string_view gemma4_rows =
    "kv_heads=num_key_value_heads:4 layernorm_1p:false qk_norm:true use_double_wide_mlp "
    "attention_pattern=layer_types:SSSSSF vocab_size_per_layer_input";
inline constexpr std::string_view qwen3_rows = "head_dim=head_dim:128 qk_norm:true";
inline constexpr std::string_view ernie_rows =
    "linear_bias=use_bias:false qkv_bias=use_bias:false tie_embeddings=tie_word_embeddings:true";

// What HunYuan's files name and its class does not read, or reads for its loss.
inline constexpr std::string_view hunyuan_rows =
    "use_mixed_mlp_moe use_cla cla_share_factor norm_type mlp_bias moe_drop_tokens "
    "moe_random_routing_dropped_token group_limited_greedy n_group topk_group "
    "routed_scaling_factor";

// Three gated delta nets, then attention with a gate; of a mixture, experts in each layer.
inline constexpr std::string_view delta_net_rows =
    "experts=num_experts head_dim=head_dim:256 ffn_hidden=moe_intermediate_size "
    "intermediate_size qk_norm:true attention_gate=attn_output_gate:true "
    "attention_pattern=full_attention_interval:4 linear_num_key_heads=linear_num_key_heads "
    "linear_num_value_heads=linear_num_value_heads linear_key_head_dim=linear_key_head_dim "
    "linear_value_head_dim=linear_value_head_dim conv_kernel=linear_conv_kernel_dim:4 "
    "mtp_layers=mtp_num_hidden_layers mamba_ssm_dtype mtp_use_dedicated_embeddings";

inline constexpr std::string_view granite_rows =
    "embedding_multiplier=embedding_multiplier:1.0 residual_multiplier=residual_multiplier:1.0 "
    "attention_multiplier=attention_multiplier:1.0 logits_scaling=logits_scaling:1.0";

// The sizes of a scan in place of attention, or next to it.
inline constexpr std::string_view scan_size_rows =
    "mamba_heads=mamba_n_heads:128 state_size=mamba_d_state:256 ssm_groups=mamba_n_groups:1 "
    "conv_kernel=mamba_d_conv:4 mamba_chunk_size !mamba_conv_bias !mamba_proj_bias";

// Convolutions in all layers but few; what the class does not read of older files.
inline constexpr std::string_view lfm2_rows =
    "kv_heads=num_key_value_heads:8 qk_norm:true conv_kernel=conv_L_cache:3 !conv_bias "
    "tie_embeddings=tie_embedding|tie_word_embeddings:true rotary_base=theta|rope_theta:1000000.0 "
    "activation:silu hidden_act dropout:0 num_heads conv_dim conv_dim_out conv_use_xavier_init "
    "block_dim block_mlp_init_scale block_norm_eps block_out_init_scale block_use_swiglu "
    "block_use_xavier_init use_pos_enc";

inline constexpr std::string_view lightning_rows =
    "experts=num_local_experts expert_ffn_hidden=intermediate_size "
    "head_dim=head_dim:128 attention_pattern=layer_types:LF shared_intermediate_size "
    "shared_moe_mode postnorm layernorm_full_attention_alpha layernorm_full_attention_beta "
    "layernorm_linear_attention_alpha layernorm_linear_attention_beta layernorm_mlp_alpha "
    "layernorm_mlp_beta full_attn_alpha_factor full_attn_beta_factor linear_attn_alpha_factor "
    "linear_attn_beta_factor mlp_alpha_factor mlp_beta_factor block_size sliding_window";

// Attention and MLP in parallel on one norm, which has no bias.
inline constexpr std::string_view cohere_rows =
    "parallel_block:true shared_norm:true normalization:layernorm-no-bias "
    "tie_embeddings=tie_word_embeddings:true qk_norm=use_qk_norm:false "
    "qk_norm_whole=use_qk_norm:false context_length=model_max_length?";

// Attention and MLP in parallel on one norm.
inline constexpr std::string_view parallel_rows = "parallel_block:true shared_norm:true";

// Fields that count experts.
inline constexpr std::string_view expert_fields =
    "num_experts num_local_experts n_routed_experts moe_num_experts";

// Of a model_type that is not known, fields as other families have them.
inline constexpr std::string_view guessed_rows =
    "kind:moe experts=num_experts|num_local_experts|n_routed_experts|moe_num_experts "
    "top_k=num_experts_per_tok|moe_topk|moe_k "
    "expert_ffn_hidden=moe_intermediate_size|intermediate_size shared_experts=n_shared_experts:0 "
    "first_dense_layers=first_k_dense_replace:0";

}  // namespace costmodel
