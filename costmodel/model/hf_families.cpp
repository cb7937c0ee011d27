#include "costmodel/model/hf_families.hpp"

#include "costmodel/model/hf_hooks.hpp"
#include "costmodel/model/hf_rows.hpp"
#include "costmodel/model/hf_scans.hpp"

namespace costmodel {

namespace {

constexpr HfFamily families[] = {
    {"llama", "LlamaForCausalLM", {llama_rows, biased_rows, "linear_bias=mlp_bias:false"}},
    {"mistral", "MistralForCausalLM", {llama_rows, "sliding_window=sliding_window?"}},
    {"qwen2", "Qwen2ForCausalLM", {llama_rows, "qkv_bias:true"}, hf_qwen},
    {"qwen3", "Qwen3ForCausalLM", {llama_rows, biased_rows, qwen3_rows}, hf_qwen},
    {"mixtral",
     "MixtralForCausalLM",
     {llama_rows, mixture_rows,
      "experts=num_local_experts expert_ffn_hidden=intermediate_size "
      "sliding_window=sliding_window?"}},
    {"qwen3_moe",
     "Qwen3MoeForCausalLM",
     {llama_rows, mixture_rows, biased_rows, qwen3_rows, "experts=num_experts"},
     hf_qwen_moe},
    {"deepseek_v2",
     "DeepseekV2ForCausalLM",
     {llama_rows, deepseek_rows, latent_rows,
      "qkv_bias=attention_bias:false router_score=scoring_func:softmax "
      "router_bias=topk_method:greedy"}},
    {"deepseek_v3",
     "DeepseekV3ForCausalLM",
     {llama_rows, deepseek_rows, latent_rows,
      "qkv_bias=attention_bias:false router_score=scoring_func:softmax"}},
    {"gpt2",
     "GPT2LMHeadModel",
     {gpt_rows, gpt2_rows, "activation=activation_function|hidden_act:gelu"}},
    {"gpt_neox",
     "GPTNeoXForCausalLM",
     {gpt_rows, rotating_rows, biased_rows,
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
     {llama_rows, biased_rows, gemma_rows, "attention_pattern=sliding_window_pattern:2"},
     hf_gemma},
    {"gemma3_text",
     "Gemma3ForCausalLM",
     {llama_rows, biased_rows, gemma_rows,
      "vocab=vocab_size:262208 heads=num_attention_heads:8 kv_heads=num_key_value_heads:4 "
      "qk_norm:true attention_pattern=sliding_window_pattern:6"},
     hf_gemma},
    {"olmo2", "Olmo2ForCausalLM", {llama_rows, biased_rows, olmo2_rows}},
    {"gpt_oss",
     "GptOssForCausalLM",
     {llama_rows, mixture_rows, biased_rows,
      "experts=num_local_experts expert_ffn_hidden=intermediate_size experts_per_token "
      "hidden_act activation:silu linear_bias:true qkv_bias=attention_bias:true "
      "attention_sinks:true sliding_window=sliding_window:4096 attention_pattern=layer_types:SF "
      "activation_clamp=swiglu_limit:7.0 glu_offset:1"}},
    {"qwen3_next",
     "Qwen3NextForCausalLM",
     {llama_rows, mixture_rows, biased_rows, delta_net_rows},
     hf_qwen_next},
    // Attention and MLP in parallel: 7B on one norm and with one head of keys and values, 40B and
    // 180B (new_decoder_architecture) on a norm each and with groups.
    {"falcon",
     "FalconForCausalLM",
     {gpt_rows, rotating_rows,
      "hidden=hidden_size ffn_hidden=ffn_hidden_size:4h linear_bias=bias:false "
      "qkv_bias=bias:false activation=activation:gelu rotary_percent=partial_rotary_factor:1.0 "
      "dropout=hidden_dropout|attention_dropout:0.0 !apply_residual_connection_post_layernorm"},
     hf_falcon},
    {"bloom",
     "BloomForCausalLM",
     {gpt_rows,
      "hidden=hidden_size|n_embed ffn_hidden=n_inner:4h activation=activation_function:bloom_gelu "
      "positions:alibi max_positions:0 embedding_norm:true "
      "dropout=hidden_dropout|attention_dropout:0.0 !apply_residual_connection_post_layernorm"}},
    {"opt",
     "OPTForCausalLM",
     {gpt_rows,
      "ffn_hidden=ffn_dim:4h linear_bias=enable_bias:true qkv_bias=enable_bias:true "
      "activation=activation_function:relu embedding_dim=word_embed_proj_dim? "
      "!layer_norm_elementwise_affine dropout=dropout|attention_dropout:0.1"},
     hf_opt},
    // Queries, keys and values without bias; every second layer with a window. attention_layers is
    // what attention_types means, written out.
    {"gpt_neo",
     "GPTNeoForCausalLM",
     {gpt_rows,
      "layers=num_layers|num_hidden_layers heads=num_heads|num_attention_heads qkv_bias:false "
      "activation=activation_function:gelu_new attention_layers "
      "dropout=resid_dropout|embed_dropout|attention_dropout:0.0"},
     hf_gpt_neo},
    {"gpt_bigcode",
     "GPTBigCodeForCausalLM",
     {gpt_rows, gpt2_rows, "activation=activation_function:gelu_pytorch_tanh"},
     hf_multi_query},
    {"bert",
     "BertForMaskedLM BertModel",
     {gpt_rows,
      "max_positions=max_position_embeddings:512 causal:false norm_placement:after "
      "embedding_norm:true token_types=type_vocab_size:2 !position_embedding_type "
      "dropout=hidden_dropout_prob|attention_probs_dropout_prob:0.1"},
     hf_bert},
    {"mamba",
     "MambaForCausalLM",
     {scans_rows, "heads=intermediate_size? head_dim:1 state_size=state_size:16 rms_norm"},
     hf_mamba},
    {"mamba2",
     "Mamba2ForCausalLM",
     {scans_rows,
      "tie_embeddings=tie_word_embeddings:false heads=num_heads:128 head_dim=head_dim:64 "
      "state_size=state_size:128 ssm_groups=n_groups:8 !rms_norm"},
     hf_mamba2},
    // Tied embeddings and ReLU; T5 1.1 and mT5 have an untied output projection and a gate.
    {"t5", "T5ForConditionalGeneration", {t5_rows}, hf_t5},
    {"mt5",
     "MT5ForConditionalGeneration",
     {t5_rows, "tie_embeddings=tie_word_embeddings:false"},
     hf_mt5},
    {"nemotron_h",
     "NemotronHForCausalLM",
     {llama_rows,
      "kind:hybrid -layers hybrid_override_pattern head_dim=attention_head_dim|head_dim "
      "gated_mlp:false activation=mlp_hidden_act:relu2 positions:none -rotary_base "
      "-rotary_percent linear_bias=mlp_bias:false qkv_bias=attention_bias:false "
      "dropout=attention_dropout:0.0"},
     hf_nemotron},
    {"kimi_k2", "KimiK2ForCausalLM", {llama_rows, deepseek_rows, latent_rows, qkv_biased_rows}},
    // The first layers are dense; the bias of attention is none of its output's.
    {"glm4_moe",
     "Glm4MoeForCausalLM glm4v_moe_text",
     {llama_rows, deepseek_rows, qkv_biased_rows,
      "head_dim=head_dim:128 qk_norm=use_qk_norm:false "
      "rotary_percent=partial_rotary_factor:0.5"}},
    {"dots1",
     "Dots1ForCausalLM",
     {llama_rows, deepseek_rows, biased_rows,
      "qk_norm:true scoring_func router_score:sigmoid use_sliding_window sliding_window "
      "layer_types"}},
    {"ernie4_5", "Ernie4_5ForCausalLM", {llama_rows, "head_dim=head_dim:128", ernie_rows}},
    {"ernie4_5_moe",
     "Ernie4_5_MoeForCausalLM",
     {llama_rows, ernie_rows,
      "kind:moe experts=moe_num_experts top_k=moe_k expert_ffn_hidden=moe_intermediate_size "
      "shared_experts=moe_num_shared_experts:2 first_dense_layers=moe_layer_start_index:1 "
      "moe_every=moe_layer_interval:1 moe_norm_min moe_capacity moe_gate moe_use_aux_free "
      "router_score:softmax router_bias:true mtp_layers=num_nextn_predict_layers"},
     hf_ernie},
    {"olmo3",
     "Olmo3ForCausalLM",
     {llama_rows, biased_rows, olmo2_rows,
      "sliding_window=sliding_window:4096 attention_pattern=layer_types:SSSF"}},
    {"granite",
     "GraniteForCausalLM",
     {llama_rows, biased_rows, granite_rows, "linear_bias=mlp_bias:false"}},
    {"granitemoe",
     "GraniteMoeForCausalLM",
     {llama_rows, mixture_rows, biased_rows, granite_rows,
      "experts=num_local_experts expert_ffn_hidden=intermediate_size"}},
    // A norm over all heads at once.
    {"minimax_m2",
     "MiniMaxM2ForCausalLM",
     {llama_rows, mixture_rows,
      "experts=num_local_experts expert_ffn_hidden=intermediate_size head_dim=head_dim:128 "
      "qk_norm=use_qk_norm:true qk_norm_whole=use_qk_norm:true router_score=scoring_func:sigmoid "
      "router_bias=use_routing_bias:true attn_type_list qk_norm_type shared_intermediate_size "
      "mtp_layers=num_mtp_modules use_mtp mtp_transformer_layers"},
     hf_minimax},
    {"hunyuan_v1_moe",
     "HunYuanMoEV1ForCausalLM",
     {llama_rows, biased_rows,
      "kind:moe experts=num_experts top_k=moe_topk:1 "
      "expert_ffn_hidden=moe_intermediate_size|intermediate_size "
      "shared_experts=num_shared_expert:1 first_dense_layers=moe_layer_num_skipped:0 "
      "head_dim=head_dim|attention_head_dim:h/a qk_norm=use_qk_norm:true",
      hunyuan_rows}},
    {"ministral3",
     "Ministral3ForCausalLM",
     {llama_rows, "head_dim=head_dim:128 sliding_window=sliding_window?"}},
    {"starcoder2",
     "Starcoder2ForCausalLM",
     {gpt_rows, rotating_rows,
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
     {llama_rows, biased_rows,
      "linear_bias=mlp_bias:false tie_embeddings=tie_word_embeddings:true no_rope_layers "
      "no_rope_layer_interval"},
     hf_qwen},
    {"qwen2_moe",
     "Qwen2MoeForCausalLM",
     {llama_rows, mixture_rows, "experts=num_experts qkv_bias:true"},
     hf_qwen2_moe},
    {"qwen2_5_vl_text",
     "Qwen2_5_VLTextModel qwen2_vl qwen2_vl_text qwen2_5_vl",
     {llama_rows, "qkv_bias:true"},
     hf_qwen},
    {"qwen3_vl_text", "Qwen3VLTextModel", {llama_rows, biased_rows, qwen3_rows}, hf_qwen},
    {"qwen3_vl_moe_text",
     "Qwen3VLMoeTextModel",
     {llama_rows, mixture_rows, biased_rows, qwen3_rows, "experts=num_experts"},
     hf_qwen_moe},
    {"qwen3_5_text",
     "Qwen3_5ForCausalLM",
     {llama_rows, biased_rows, delta_net_rows, "-experts ffn_hidden=intermediate_size"}},
    {"qwen3_5_moe_text",
     "Qwen3_5MoeForCausalLM",
     {llama_rows, mixture_rows, biased_rows, delta_net_rows},
     hf_shared_expert},
    {"olmoe",
     "OlmoeForCausalLM",
     {llama_rows, mixture_rows, biased_rows,
      "experts=num_experts expert_ffn_hidden=intermediate_size qk_norm:true qk_norm_whole:true "
      "clip_qkv"}},
    {"glm4",
     "Glm4ForCausalLM",
     {llama_rows, qkv_biased_rows,
      "head_dim=head_dim:128 norm_placement:both rotary_percent=partial_rotary_factor:0.5"}},
    // A lightning indexer chooses the tokens that a query attends to.
    {"deepseek_v32",
     "DeepseekV32ForCausalLM",
     {llama_rows, deepseek_rows, latent_rows,
      "qkv_bias=attention_bias:false attention_pattern:I index_heads=index_n_heads "
      "index_head_dim=index_head_dim index_topk=index_topk"}},
    // Chunks of attention in all layers but each fourth; norms of queries and keys have no gains.
    {"llama4_text",
     "Llama4ForCausalLM",
     {llama_rows, mixture_rows, biased_rows,
      "experts=num_local_experts:16 top_k=num_experts_per_tok:1 "
      "expert_ffn_hidden=intermediate_size "
      "ffn_hidden=intermediate_size_mlp:16384 shared_experts:1 router_score:sigmoid "
      "moe_every=interleave_moe_layer_step:1 moe_layers head_dim=head_dim:128 "
      "qk_norm=use_qk_norm:true attention_chunk=attention_chunk_size:8192 no_rope_layer_interval "
      "attn_temperature_tuning floor_scale attn_scale for_llm_compressor"},
     hf_llama4},
    {"cohere", "CohereForCausalLM", {llama_rows, biased_rows, cohere_rows}, hf_cohere},
    {"cohere2",
     "Cohere2ForCausalLM",
     {llama_rows, biased_rows, cohere_rows,
      "sliding_window=sliding_window:4096 attention_pattern=sliding_window_pattern:4 layer_switch "
      "order_of_interleaved_layers position_embedding_type rotary_pct use_embedding_sharing "
      "use_gated_activation use_parallel_block use_parallel_embedding"},
     hf_cohere},
    // Scans in all layers but few; experts, and a shared one as wide as several.
    {"granitemoehybrid",
     "GraniteMoeHybridForCausalLM",
     {llama_rows, biased_rows, granite_rows,
      "attention_pattern=layer_types:M normalization_function init_method"},
     hf_granite_hybrid},
    {"jamba",
     "JambaForCausalLM",
     {llama_rows,
      "kind:moe positions:none -rotary_base -rotary_percent experts=num_experts:16 "
      "top_k=num_experts_per_tok:2 expert_ffn_hidden=intermediate_size "
      "moe_every=expert_layer_period:2 head_dim:h/a mamba_head_dim:1 state_size=mamba_d_state:16 "
      "conv_kernel=mamba_d_conv:4 scan_norms:true !mamba_conv_bias !mamba_proj_bias "
      "calc_logits_for_entire_prompt sliding_window"},
     hf_jamba},
    // Attention and a scan in parallel on one norm.
    {"falcon_h1",
     "FalconH1ForCausalLM",
     {llama_rows, biased_rows, scan_size_rows,
      "linear_bias=mlp_bias:false attention_pattern:P mamba_head_dim=mamba_d_head "
      "scan_output_norm=mamba_rms_norm:false embedding_multiplier=embedding_multiplier:1.0 "
      "!projectors_bias mamba_d_ssm mamba_expand mamba_norm_before_gate mamba_use_mlp"},
     hf_falcon_h1},
    {"minimax_m1",
     "MiniMaxM1ForCausalLM",
     {llama_rows, mixture_rows, lightning_rows},
     hf_minimax_m1},
    {"minimax", "MiniMaxForCausalLM", {llama_rows, mixture_rows, lightning_rows}, hf_minimax_m1},
    // Kimi delta attention, and latent attention without positions in few layers.
    {"kimi_linear",
     "KimiLinearForCausalLM",
     {llama_rows, deepseek_rows, latent_rows,
      "experts=num_experts top_k=num_experts_per_token shared_experts=num_shared_experts:0 "
      "router_score=moe_router_activation_func:sigmoid router_bias:true "
      "expert_groups=num_expert_group? context_length=model_max_length? use_grouped_topk "
      "moe_renormalize"},
     hf_kimi_linear},
    // flash-linear-attention 0.3, RWKV7Config; norm_first: a norm after the embedding.
    {"rwkv7",
     "RWKV7ForCausalLM",
     {llama_rows,
      "head_dim=head_dim:64 -heads -kv_heads gated_mlp:false activation=hidden_act:sqrelu "
      "positions:none -rotary_base -rotary_percent normalization:layernorm "
      "embedding_norm=norm_first:true attention_pattern:R rwkv_decay_rank=decay_low_rank_dim "
      "rwkv_rate_rank=a_low_rank_dim rwkv_value_rank=v_low_rank_dim "
      "rwkv_gate_rank=gate_low_rank_dim dropout:0 num_heads hidden_ratio value_dim attn attn_mode "
      "norm_bias fuse_norm fuse_cross_entropy fuse_linear_cross_entropy use_l2warp"},
     hf_rwkv7},
};

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
  return {model_type, "", {llama_rows, biased_rows, sparse ? guessed_rows : std::string_view()}};
}

}  // namespace costmodel
