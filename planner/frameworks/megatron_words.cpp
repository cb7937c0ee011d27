#include "planner/frameworks/megatron_words.hpp"

#include <algorithm>
#include <array>

#include "costmodel/base/error.hpp"
#include "planner/frameworks/framework_version.hpp"

namespace planner {

namespace {

constexpr std::array<MegatronWord, 61> all_words{{
    {"--num-layers", "model.layers"},
    {"--hidden-size", "model.hidden"},
    {"--num-attention-heads", "model.heads"},
    {"--q-lora-rank", "model.q_lora_rank", WordOf::latent_attention},
    {"--kv-lora-rank", "model.kv_lora_rank", WordOf::latent_attention},
    {"--qk-head-dim", "model.qk_head_dim", WordOf::latent_attention},
    {"--qk-pos-emb-head-dim", "model.qk_pos_emb_head_dim", WordOf::latent_attention},
    {"--v-head-dim", "model.v_head_dim", WordOf::latent_attention},
    {"--num-experts", "model.experts", WordOf::experts},
    {"--moe-router-topk", "model.top_k", WordOf::experts},
    {"--moe-ffn-hidden-size", "model.expert_ffn_hidden", WordOf::experts},
    {"--moe-router-num-groups", "model.expert_groups", WordOf::experts},
    {"--moe-router-group-topk", "model.expert_groups_per_token", WordOf::experts},
    {"--moe-router-topk-scaling-factor", "model.router_scaling", WordOf::experts},
    {"--moe-router-enable-expert-bias", "model.router_bias", WordOf::experts, true},
    {"--mtp-num-layers", "model.mtp_layers", WordOf::mtp},
    {"--moe-latent-size", "model.moe_latent_size", WordOf::experts},
    {"--moe-shared-expert-gate", "model.shared_expert_gate", WordOf::experts, true},
    {"--attention-output-gate", "model.attention_gate", WordOf::any_job, true},
    {"--mamba-num-heads", "model.mamba_heads", WordOf::scan},
    {"--mamba-head-dim", "model.mamba_head_dim", WordOf::scan},
    {"--mamba-num-groups", "model.ssm_groups", WordOf::scan},
    {"--mamba-state-dim", "model.state_size", WordOf::scan},
    {"--linear-num-key-heads", "model.linear_num_key_heads", WordOf::delta_net},
    {"--linear-num-value-heads", "model.linear_num_value_heads", WordOf::delta_net},
    {"--linear-key-head-dim", "model.linear_key_head_dim", WordOf::delta_net},
    {"--linear-value-head-dim", "model.linear_value_head_dim", WordOf::delta_net},
    {"--norm-epsilon", "model.norm_epsilon"},
    {"--apply-layernorm-1p", "model.layernorm_1p", WordOf::any_job, true},
    {"--activation-func-clamp-value", "model.activation_clamp"},
    {"--glu-linear-offset", "model.glu_offset"},
    {"--microbatch-group-size-per-virtual-pipeline-stage", "plan.micro_batch_group"},
    {"--rotary-base", "model.rotary_base", WordOf::rotary},
    {"--rotary-percent", "model.rotary_percent", WordOf::rotary},
    {"--global-batch-size", "training.global_batch"},
    {"--seq-length", "training.sequence"},
    {"--moe-expert-capacity-factor", "training.capacity_factor", WordOf::experts},
    {"--moe-expert-rank-capacity-factor", "training.expert_buffer_factor", WordOf::experts},
    {"--moe-paged-stash", "training.paged_stash", WordOf::experts, true},
    {"--use-transformer-engine-op-fuser", "training.fused_grouped_mlp", WordOf::experts, true},
    {"--overlap-grad-reduce", "training.overlap.overlap_grad_reduce", WordOf::any_job, true},
    {"--overlap-param-gather", "training.overlap.overlap_param_gather", WordOf::any_job, true},
    {"--tp-comm-overlap", "training.overlap.tp_comm_overlap", WordOf::any_job, true},
    {"--tensor-model-parallel-size", "plan.tp"},
    {"--pipeline-model-parallel-size", "plan.pp"},
    {"--num-virtual-stages-per-pipeline-rank", "plan.vpp"},
    {"--context-parallel-size", "plan.cp"},
    {"--cp-comm-type", "plan.cp_comm"},
    {"--expert-model-parallel-size", "plan.ep"},
    {"--expert-tensor-parallel-size", "plan.etp"},
    {"--micro-batch-size", "plan.micro_batch"},
    {"--sequence-parallel", "plan.sequence_parallel", WordOf::any_job, true},
    {"--pipeline-model-parallel-layout", "plan.stage_layers"},
    {"--overlap-moe-expert-parallel-comm", "plan.expert_overlap", WordOf::experts, true},
    {"--delay-wgrad-compute", "plan.delayed_weight_gradient", WordOf::experts, true},
    {"--moe-shared-expert-overlap", "plan.shared_expert_overlap", WordOf::experts, true},
    {"--ffn-hidden-size", "model.ffn_hidden"},
    {"--add-qkv-bias", "model.qkv_bias", WordOf::any_job, true},
    {"--rope-scaling-factor", "model.rope_scaling_factor", WordOf::rotary},
    {"--num-query-groups", "model.kv_heads"},
    {"--max-position-embeddings", "model.max_positions"},
}};

}  // namespace

std::span<const MegatronWord> megatron_words() { return all_words; }

bool has_megatron_flag(std::string_view key) {
  return std::ranges::find(all_words, key, &MegatronWord::key) != all_words.end();
}

std::string_view megatron_flag(std::string_view key) {
  const auto* const found =
      std::ranges::find_if(all_words, [&](const MegatronWord& word) { return word.key == key; });
  SHARDPLAN_CHECK(found != all_words.end());
  return found->flag;
}

bool is_megatron_flag(std::string_view flag) {
  return framework_version("megatron").has_flag(flag);
}

bool is_harmless_to_megatron(std::string_view flag) {
  return framework_version("megatron").is_harmless(flag);
}

}  // namespace planner
