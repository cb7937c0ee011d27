#include "costmodel/model/hf_families.hpp"

#include <algorithm>

#include "costmodel/config/synonyms.hpp"
#include "costmodel/model/hf_hooks.hpp"
#include "costmodel/model/hf_rows.hpp"
#include "costmodel/model/hf_scans.hpp"

namespace costmodel {

namespace {

constexpr HfFamily families[] = {
    {"llama",
     "LlamaForCausalLM code_llama aquila xverse",
     {llama_rows, biased_rows, "linear_bias=mlp_bias:false"}},
    {"mistral",
     "MistralForCausalLM",
     {llama_rows, "kv_heads=num_key_value_heads:8 sliding_window=sliding_window:4096"}},
    {"qwen2", "Qwen2ForCausalLM", {llama_rows, "qkv_bias:true"}, hf_qwen},
    {"qwen3", "Qwen3ForCausalLM", {llama_rows, biased_rows, qwen3_rows}, hf_qwen},
    {"mixtral",
     "MixtralForCausalLM",
     {llama_rows, mixture_rows,
      "experts=num_local_experts:8 top_k=num_experts_per_tok:2 kv_heads=num_key_value_heads:8 "
      "expert_ffn_hidden=intermediate_size sliding_window=sliding_window?"}},
    {"qwen3_moe",
     "Qwen3MoeForCausalLM",
     {llama_rows, mixture_rows, biased_rows, qwen3_rows, "experts=num_experts"},
     hf_qwen_moe},
    {"deepseek_v2",
     "DeepseekV2ForCausalLM",
     {llama_rows, deepseek_rows,
      "qkv_bias=attention_bias:false router_score=scoring_func:softmax "
      "router_bias=topk_method:greedy use_mla"},
     hf_deepseek_v2},
    {"deepseek_v3",
     "DeepseekV3ForCausalLM",
     {llama_rows, deepseek_rows, latent_rows,
      "qkv_bias=attention_bias:false router_score=scoring_func:softmax "
      "shared_experts=n_shared_experts:1 first_dense_layers=first_k_dense_replace:3 "
      "q_lora_rank=q_lora_rank:1536"}},
    {"gpt2",
     "GPT2LMHeadModel gpt-sw3",
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
    // Phi-4 multimodal's adapters and towers are named as not understood.
    {"phi3",
     "Phi3ForCausalLM phi4mm phi4_multimodal phi3_v",
     {llama_rows,
      "attention_bias sliding_window=sliding_window? "
      "dropout=resid_pdrop|embd_pdrop|attention_dropout:0.0"}},
    {"gemma2",
     "Gemma2ForCausalLM",
     {llama_rows, biased_rows, gemma_rows,
      "kv_heads=num_key_value_heads:4 attention_pattern=sliding_window_pattern:2 "
      "attention_softcap=attn_logit_softcapping:50.0 logits_softcap=final_logit_softcapping:30.0"},
     hf_gemma},
    {"gemma3_text",
     "Gemma3ForCausalLM",
     {llama_rows, biased_rows, gemma_rows,
      "vocab=vocab_size:262208 heads=num_attention_heads:8 kv_heads=num_key_value_heads:4 "
      "qk_norm:true attention_pattern=sliding_window_pattern:6"},
     hf_gemma},
    {"olmo2", "Olmo2ForCausalLM", {llama_rows, biased_rows, olmo2_rows, across_heads_rows}},
    {"gpt_oss",
     "GptOssForCausalLM",
     {llama_rows, mixture_rows, biased_rows,
      "experts=num_local_experts expert_ffn_hidden=intermediate_size experts_per_token "
      "hidden_act activation:silu linear_bias:true qkv_bias=attention_bias:true "
      "kv_heads=num_key_value_heads:8 head_dim=head_dim:64 "
      "attention_sinks:true sliding_window=sliding_window:128 attention_pattern=layer_types:SF "
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
     "BertForMaskedLM BertModel roberta RobertaForMaskedLM RobertaModel xlm-roberta "
     "XLMRobertaForMaskedLM XLMRobertaModel camembert CamembertForMaskedLM CamembertModel",
     {gpt_rows, bert_rows},
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
      "kind:hybrid -layers head_dim=attention_head_dim|head_dim:128 "
      "kv_heads=num_key_value_heads:8 "
      "gated_mlp:false activation=mlp_hidden_act:relu2 positions:none -rotary_base "
      "-rotary_percent linear_bias=mlp_bias:false qkv_bias=attention_bias:false "
      "dropout=attention_dropout:0.0 mtp_hybrid_override_pattern mtp_layers_block_type"},
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
     {llama_rows, biased_rows, olmo2_rows, across_heads_rows,
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
     hf_rotary_columns},
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
    {"smollm3",
     "SmolLM3ForCausalLM",
     {llama_rows, biased_rows,
      "linear_bias=mlp_bias:false tie_embeddings=tie_word_embeddings:true no_rope_layers "
      "no_rope_layer_interval"},
     hf_smollm3},
    {"qwen2_moe",
     "Qwen2MoeForCausalLM",
     {llama_rows, mixture_rows, "experts=num_experts qkv_bias:true"},
     hf_qwen2_moe},
    {"qwen2_5_vl_text",
     "Qwen2_5_VLTextModel qwen2_vl qwen2_vl_text qwen2_5_vl qwen2_5_omni_text",
     {llama_rows, "qkv_bias:true"},
     hf_qwen},
    {"qwen3_vl_text", "Qwen3VLTextModel", {llama_rows, biased_rows, qwen3_rows}, hf_qwen},
    {"qwen3_vl_moe_text",
     "Qwen3VLMoeTextModel qwen3_omni_moe_text",
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
     {llama_rows, mixture_rows, biased_rows, across_heads_rows,
      "experts=num_experts expert_ffn_hidden=intermediate_size clip_qkv"}},
    {"glm4",
     "Glm4ForCausalLM",
     {llama_rows, qkv_biased_rows,
      "head_dim=head_dim:128 norm_placement:both rotary_percent=partial_rotary_factor:0.5"}},
    {"glm4v_text",
     "Glm4vTextModel",
     {llama_rows,
      "kv_heads=num_key_value_heads:2 head_dim=head_dim:h/a qkv_bias:true norm_placement:both "
      "rotary_percent=partial_rotary_factor:0.5"}},
    {"ministral",
     "MinistralForCausalLM",
     {llama_rows,
      "kv_heads=num_key_value_heads:8 sliding_window=sliding_window:4096 "
      "attention_pattern=layer_types:S"}},
    // A lightning indexer chooses the tokens that a query attends to.
    {"deepseek_v32",
     "DeepseekV32ForCausalLM",
     {llama_rows, deepseek_rows, latent_rows,
      "qkv_bias=attention_bias:false attention_pattern:I index_heads=index_n_heads "
      "index_head_dim=index_head_dim index_topk=index_topk"}},
    // Chunks of attention in all layers but each fourth; norms of queries and keys have no gains.
    {"llama4_text",
     "Llama4ForCausalLM",
     {llama_rows, biased_rows,
      "ffn_hidden=intermediate_size_mlp:16384 head_dim=head_dim:128 kv_heads=num_key_value_heads:8 "
      "qk_norm=use_qk_norm:true attention_chunk=attention_chunk_size:8192 "
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
      "kv_heads=num_key_value_heads:8 positions:none -rotary_base -rotary_percent head_dim:h/a "
      "mamba_head_dim:1 state_size=mamba_d_state:16 "
      "conv_kernel=mamba_d_conv:4 scan_norms:true !mamba_conv_bias !mamba_proj_bias "
      "calc_logits_for_entire_prompt sliding_window"},
     hf_jamba},
    // Attention and a scan in parallel on one norm.
    {"falcon_h1",
     "FalconH1ForCausalLM",
     {llama_rows, biased_rows, scan_size_rows,
      "kv_heads=num_key_value_heads:8 linear_bias=mlp_bias:false attention_pattern:P "
      "scan_output_norm=mamba_rms_norm:false embedding_multiplier=embedding_multiplier:1.0 "
      "!projectors_bias mamba_norm_before_gate mamba_use_mlp"},
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
    // One norm for attention and MLP.
    {"phi",
     "PhiForCausalLM",
     {gpt_rows, rotating_rows, parallel_rows,
      "kv_heads=num_key_value_heads:heads activation=hidden_act:gelu_new "
      "tie_embeddings=tie_word_embeddings:false rotary_percent=partial_rotary_factor:0.5 "
      "qk_norm=qk_layernorm:false dropout=resid_pdrop|embd_pdrop|attention_dropout:0.0"},
     hf_phi},
    {"gptj",
     "GPTJForCausalLM codegen CodeGenForCausalLM",
     {gpt_rows, gpt2_rows, parallel_rows,
      "positions:rotary max_positions:0 rotary_base:10000 qkv_bias:false "
      "activation=activation_function:gelu_new tie_embeddings=tie_word_embeddings:false rotary "
      "context_length=n_positions? dropout=resid_pdrop|attn_pdrop|embd_pdrop:0.0"},
     hf_gptj},
    {"mpt",
     "MPTForCausalLM MptForCausalLM",
     {gpt_rows,
      "layers=n_layers|num_hidden_layers hidden=d_model|hidden_size "
      "heads=n_heads|num_attention_heads max_positions=max_seq_len:2048 activation:gelu "
      "context_length=max_seq_len? dropout=resid_pdrop|emb_pdrop:0.0 embedding_fraction "
      "expansion_ratio init_config init_device logit_scale norm_type tokenizer_name verbose"},
     hf_mpt},
    {"dbrx",
     "DbrxForCausalLM",
     {llama_rows,
      "kind:moe layers=n_layers|num_hidden_layers hidden=d_model|hidden_size "
      "heads=n_heads|num_attention_heads -kv_heads -ffn_hidden -rotary_base -rotary_percent "
      "activation:silu normalization:layernorm-no-bias context_length=max_seq_len? "
      "dropout=resid_pdrop|emb_pdrop:0.0"},
     hf_dbrx},
    {"stablelm",
     "StableLmForCausalLM",
     {llama_rows,
      "normalization:layernorm rotary_percent=partial_rotary_factor:0.25 "
      "qkv_bias=use_qkv_bias:false"},
     hf_stablelm},
    {"nemotron",
     "NemotronForCausalLM",
     {gpt_rows, rotating_rows,
      "kv_heads=num_key_value_heads:heads head_dim=head_dim:h/a activation=hidden_act:relu2 "
      "layernorm_1p:true rotary_percent=partial_rotary_factor|rope_percent:0.5 "
      "linear_bias=mlp_bias:false qkv_bias=attention_bias:false !attention_bias "
      "tie_embeddings=tie_word_embeddings:false dropout=attention_dropout|hidden_dropout:0.0"}},
    {"arcee",
     "ArceeForCausalLM",
     {llama_rows, biased_rows,
      "linear_bias=mlp_bias:false gated_mlp:false activation=hidden_act:relu2"}},
    {"gemma",
     "GemmaForCausalLM",
     {llama_rows, biased_rows,
      "hidden_act activation=hidden_activation:gelu_pytorch_tanh layernorm_1p:true "
      "head_dim=head_dim:256 tie_embeddings=tie_word_embeddings:true"},
     hf_gemma},
    {"phimoe",
     "PhiMoEForCausalLM PhimoeForCausalLM",
     {llama_rows, mixture_rows, biased_rows,
      "kv_heads=num_key_value_heads:8 experts=num_local_experts:16 top_k=num_experts_per_tok:2 "
      "expert_ffn_hidden=intermediate_size normalization:layernorm "
      "sliding_window=sliding_window? !lm_head_bias"}},
    {"exaone",
     "ExaoneForCausalLM",
     {llama_rows,
      "layers=num_layers|num_hidden_layers activation=activation_function:silu "
      "dropout=attention_dropout|embed_dropout:0.0"}},
    {"exaone4",
     "Exaone4ForCausalLM",
     {llama_rows, "norm_placement:branch qk_norm:true"},
     hf_exaone},
    {"internlm", "InternLMForCausalLM", {llama_rows, "qkv_bias=bias:true !bias"}},
    {"internlm2", "InternLM2ForCausalLM", {llama_rows, "qkv_bias=bias:false !bias"}},
    {"internlm3",
     "InternLM3ForCausalLM",
     {llama_rows, "qkv_bias=qkv_bias:false linear_bias=bias:false"}},
    {"baichuan",
     "BaichuanForCausalLM BaiChuanForCausalLM",
     {llama_rows, "context_length=model_max_length? z_loss_weight"},
     hf_baichuan},
    {"minicpm",
     "MiniCPMForCausalLM",
     {llama_rows, biased_rows,
      "embedding_multiplier=scale_emb:1.0 tie_embeddings=tie_word_embeddings:true"},
     hf_minicpm},
    // Latent attention in a dense model.
    {"minicpm3",
     "MiniCPM3ForCausalLM",
     {llama_rows, latent_rows,
      "q_lora_rank=q_lora_rank:768 kv_lora_rank=kv_lora_rank:256 qk_head_dim=qk_nope_head_dim:64 "
      "qk_pos_emb_head_dim=qk_rope_head_dim:32 v_head_dim=v_head_dim:h/a attention_bias "
      "embedding_multiplier=scale_emb:1.0 tie_embeddings=tie_word_embeddings:true"},
     hf_minicpm},
    // A scan and an MLP in most layers, attention and an MLP in attn_layer_indices.
    {"bamba",
     "BambaForCausalLM",
     {llama_rows,
      "kv_heads=num_key_value_heads:8 rotary_percent=partial_rotary_factor:0.5 attention_bias "
      "mlp_bias z_loss_coefficient"},
     hf_bamba},
    // An MLP without a gate, whose activation has two learnt numbers.
    {"apertus",
     "ApertusForCausalLM",
     {llama_rows, biased_rows,
      "gated_mlp:false activation:silu hidden_act qk_norm=qk_norm:true "
      "rotary_base=rope_theta:12000000.0 linear_bias=mlp_bias:false post_norm"},
     hf_apertus},
    {"glm",
     "GlmForCausalLM",
     {llama_rows, qkv_biased_rows,
      "head_dim=head_dim:128 rotary_percent=partial_rotary_factor:0.5"}},
    // GLM's own code (THUDM/chatglm3-6b, glm-4-9b): half of each head is rotated.
    {"chatglm",
     "ChatGLMModel ChatGLMForConditionalGeneration",
     {llama_rows,
      "layers=num_layers head_dim=kv_channels:128 kv_heads=multi_query_group_num:heads "
      "vocab=padded_vocab_size|vocab_size ffn_hidden=ffn_hidden_size activation:silu "
      "linear_bias=add_bias_linear:false qkv_bias=add_qkv_bias:false rotary_percent:0.5 "
      "-rotary_base context_length=seq_length? multi_query_attention rmsnorm post_layer_norm "
      "apply_query_key_layer_scaling apply_residual_connection_post_layernorm "
      "fp32_residual_connection "
      "original_rope interleaved_qkv pre_seq_len prefix_projection quantization_bit"},
     hf_chatglm},
    {"mimo",
     "MiMoForCausalLM",
     {llama_rows, "qkv_bias=attention_bias:true mtp_layers=num_nextn_predict_layers"},
     hf_qwen},
    {"hunyuan_v1_dense",
     "HunYuanDenseV1ForCausalLM",
     {llama_rows, biased_rows, "head_dim=head_dim|attention_head_dim:h/a qk_norm=use_qk_norm:true",
      hunyuan_rows}},
    // DeepSeek's first mixture, with attention in full.
    {"deepseek",
     "DeepseekForCausalLM",
     {llama_rows, deepseek_rows, biased_rows,
      "router_score=scoring_func:softmax router_bias=topk_method:greedy"}},
    // Ling and Ring.
    {"bailing_moe",
     "BailingMoeForCausalLM BailingMoeV2ForCausalLM bailing_moe_v2",
     {llama_rows, deepseek_rows,
      "experts=num_experts shared_experts=num_shared_experts:0 qk_norm=use_qk_norm:false "
      "qkv_bias=use_qkv_bias:false linear_bias=use_bias:false "
      "router_score=score_function:softmax router_bias=moe_router_enable_expert_bias:false "
      "dropout=attention_dropout|embedding_dropout|output_dropout:0.0 norm_head norm_softmax "
      "use_rmsnorm rotary_dim moe_shared_expert_intermediate_size router_dtype multi_gate "
      "use_sliding_window sliding_window mtp_loss_scaling_factor"}},
    {"glm4_moe_lite",
     "Glm4MoeLiteForCausalLM",
     {llama_rows, deepseek_rows, latent_rows,
      "qkv_bias=attention_bias:false shared_experts=n_shared_experts:1 "
      "first_dense_layers=first_k_dense_replace:1 partial_rotary_factor rope_interleave"},
     hf_layer_kinds},
    // DeepSeek-V3.2's indexer; layers may share that of another.
    {"glm_moe_dsa",
     "GlmMoeDsaForCausalLM",
     {llama_rows, deepseek_rows, latent_rows,
      "qkv_bias=attention_bias:false shared_experts=n_shared_experts:1 "
      "first_dense_layers=first_k_dense_replace:3 attention_pattern:I "
      "index_heads=index_n_heads:32 index_head_dim=index_head_dim:128 "
      "index_topk=index_topk:2048 layer_types mlp_bias rope_interleave indexer_rope_interleave"},
     hf_layer_kinds},
    {"mistral4",
     "Mistral4ForCausalLM",
     {llama_rows, deepseek_rows, latent_rows,
      "qkv_bias=attention_bias:false shared_experts=n_shared_experts:1 router_score:softmax "
      "router_bias:false rope_interleave"}},
    {"olmo",
     "OlmoForCausalLM",
     {llama_rows, biased_rows, "normalization:layernorm-no-bias clip_qkv"},
     hf_olmo},
    // Windows in most layers, a gate on attention, and norms on both sides of each branch.
    {"afmoe",
     "AfmoeForCausalLM",
     {llama_rows, mixture_rows,
      "experts=num_experts shared_experts=num_shared_experts:2 "
      "first_dense_layers=num_dense_layers:1 router_score=score_func:sigmoid router_bias:true "
      "router_scaling=route_scale:1.0 head_dim=head_dim:128 qk_norm:true attention_gate:true "
      "norm_placement:both sliding_window=sliding_window:1024 "
      "attention_pattern=global_attn_every_n_layers:4 route_norm num_expert_groups "
      "num_limited_groups load_balance_coeff use_grouped_mm n_group topk_group"},
     hf_afmoe},
    {"exaone_moe",
     "ExaoneMoeForCausalLM ExaoneMoEForCausalLM",
     {llama_rows, deepseek_rows,
      "experts=num_experts shared_experts=num_shared_experts:1 qk_norm:true "
      "first_dense_layers=first_k_dense_replace:1 router_scaling=routed_scaling_factor:2.5"},
     hf_exaone_moe},
    {"solar_open",
     "SolarOpenForCausalLM",
     {llama_rows, deepseek_rows, qkv_biased_rows,
      "head_dim=head_dim:128 ffn_hidden=intermediate_size|moe_intermediate_size "
      "shared_experts=n_shared_experts:1 use_qk_norm"}},
    {"granitemoeshared",
     "GraniteMoeSharedForCausalLM",
     {llama_rows, mixture_rows, biased_rows, granite_rows,
      "experts=num_local_experts:8 top_k=num_experts_per_tok:2 "
      "expert_ffn_hidden=intermediate_size"},
     hf_granite_shared},
    {"lfm2",
     "Lfm2ForCausalLM",
     {llama_rows, lfm2_rows,
      "ffn_hidden=block_ff_dim|intermediate_size:12288 attention_pattern=layer_types:F"},
     hf_lfm2},
    {"lfm2_moe",
     "Lfm2MoeForCausalLM",
     {llama_rows, mixture_rows, lfm2_rows,
      "ffn_hidden=intermediate_size:7168 experts=num_experts:32 top_k=num_experts_per_tok:4 "
      "expert_ffn_hidden=moe_intermediate_size:1792 first_dense_layers=num_dense_layers:2 "
      "router_score:sigmoid router_bias=use_expert_bias:true "
      "router_scaling=routed_scaling_factor:1.0 attention_pattern=layer_types:F"}},
    // Layers with a window have more heads of queries, and every head a gate.
    {"step3p5",
     "Step3p5ForCausalLM",
     {llama_rows,
      "-rotary_base -rotary_percent rope_theta partial_rotary_factors kind:moe "
      "kv_heads=num_attention_groups:8 head_dim=head_dim:128 qk_norm:true experts=moe_num_experts "
      "top_k=moe_top_k|num_experts_per_tok expert_ffn_hidden=moe_intermediate_size "
      "router_score=moe_router_activation:softmax router_bias=use_moe_router_bias:true "
      "router_scaling=moe_router_scaling_factor:1.0 head_gate=use_head_wise_attn_gate:false "
      "sliding_window=sliding_window? attention_pattern=layer_types:F "
      "mtp_layers=num_nextn_predict_layers use_moe use_qk_norm "
      "moe_every_n_layer moe_layer_offset norm_expert_weight need_fp32_gate use_rope_layers "
      "yarn_only_types att_impl_type max_seq_len swiglu_limits swiglu_limits_shared"},
     hf_step3p5},
    // Layers with a window have more heads of keys and values, and sinks.
    {"mimo_v2_flash",
     "MiMoV2FlashForCausalLM mimo_v2 MiMoV2ForCausalLM",
     {llama_rows, deepseek_rows, qkv_biased_rows,
      "kv_heads=num_key_value_heads:4 head_dim=head_dim:192 v_head_dim=v_head_dim:128 "
      "sliding_window=sliding_window|sliding_window_size:128 swa_rope_theta attention_value_scale "
      "first_dense_layers=first_k_dense_replace:1 rotary_percent=partial_rotary_factor:0.334 "
      "attention_chunk_size attention_projection_layout moe_router_dtype"},
     hf_mimo_v2},
    {"gemma4_text",
     "Gemma4ForCausalLM",
     {llama_rows, biased_rows, gemma_rows, gemma4_rows, "sliding_window=sliding_window:512"},
     hf_gemma4},
    {"gemma4_unified_text",
     "Gemma4UnifiedForCausalLM",
     {llama_rows, biased_rows, gemma_rows, gemma4_rows,
      "sliding_window=sliding_window:1024 hidden_size_per_layer_input"},
     hf_gemma4_unified},
    // Llama 3.2 Vision: some layers attend to the image in place of the text.
    {"mllama_text_model",
     "MllamaForCausalLM",
     {llama_rows, "linear_bias=mlp_bias:false"},
     hf_mllama},
    {"falcon_mamba",
     "FalconMambaForCausalLM",
     {scans_rows, "heads=intermediate_size? head_dim:1 state_size=state_size:16 mixer_rms_eps"},
     hf_mamba},
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
  const bool sparse = std::ranges::any_of(
      map.entries, [](const auto& entry) { return has_word(expert_fields, entry.key); });
  return {model_type, "", {llama_rows, biased_rows, sparse ? guessed_rows : std::string_view()}};
}

}  // namespace costmodel
