#include "planner/frameworks/megatron_words.hpp"

#include <algorithm>
#include <array>

#include "costmodel/base/error.hpp"

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

// Without the dashes; '*' at the end stands for any further letters.
constexpr std::array<std::string_view, 6> harmless{
    // data
    "data-path data-args-path data-cache-path train-data-path valid-data-path test-data-path "
    "per-* split mock-data tokenizer-* disable-tokenizer-* no-tokenizer-* null-tokenizer-* "
    "vocab-file merge-file num-workers dataloader-* eod-mask-loss reset-* fim-* tiktoken-* "
    "num-dataset-builder-threads mid-level-dataset-surplus trust-remote-code no-mmap-bin-"
    "files no-create-attention-mask-in-dataloader chat-template mask-* short-seq-prob use-"
    "gigatoken",
    // logs and profiles
    "log-* no-log-* disable-log-* logging-level tensorboard-* wandb-* timing-log-* one-"
    "logger-* no-one-logger otel-* app-tag-* nvtx-ranges profile* use-pytorch-profiler "
    "pytorch-profiler-* record-* memory-* throughput-window-size set-level-for-all-loggers "
    "runtime-time-unit config-logger-dir flight-recorder-* disable-flight-recorder-* "
    "straggler-* disable-straggler-on-startup no-filter-warnings disable-filter-warnings moe-"
    "per-layer-logging",
    // checkpoints and the end of a run
    "save* load* no-save-* no-load-* disable-save-* disable-load-* ckpt-* no-ckpt-* disable-"
    "ckpt-* dist-ckpt-* use-dist-ckpt async-save async-strategy async-ckpt-* auto-detect-"
    "ckpt-format finetune pretrained-checkpoint exit-* non-persistent-* persistent-save-"
    "interval use-checkpoint-* override-* use-persistent-ckpt-worker verify-integrity "
    "replication*",
    // optimization, initialization and evaluation
    "lr* min-lr weight-decay* start-weight-decay end-weight-decay no-weight-decay-cond-type "
    "wd-incr-steps wsd-* clip-grad adam-* muon-* sgd-momentum decoupled-* head-lr-mult warmup loss-"
    "scale* initial-loss-scale min-loss-scale hysteresis seed init-* no-initialization "
    "embedding-init-method-std use-cpu-initialization data-parallel-random-init "
    "apply-wd-to-qk-layernorm mup-* train-iters train-samples eval-* full-validation "
    "multiple-validation-sets validation-set-names start-eval-at-iter skip-train iterations-"
    "to-skip moe-aux-loss-coeff moe-z-loss-coeff moe-input-jitter-eps moe-router-load-"
    "balancing-type moe-router-bias-update-rate mtp-loss-scaling-factor rotary-interleaved "
    "rope-type calculate-per-token-loss",
    // the process
    "distributed-backend distributed-timeout-* local-rank lazy-mpu-init use-mcore-models "
    "manual-gc* no-manual-gc-eval disable-manual-gc-eval te-rng-tracker inprocess-* ft-* "
    "enable-ft-package calc-ft-timeouts adlr-* enable-experimental enable-msc disable-msc "
    "object-storage-cache-path no-check-for-nan-in-loss-and-grad check-for-large-grads "
    "disable-gloo-process-groups run-workload-inspector-server fake-process-group",
    // other programs of Megatron-LM
    "inference-* rl-* grpo-* bert-* biencoder-* dino-* ict-* vision-* swin-* img-* num-"
    "classes num-channels patch-dim retriever-* block-data-path embedding-path titles-data-"
    "path evidence-data-path query-in-block-prob use-one-sent-docs iter-per-epoch classes-"
    "fraction data-per-class-fraction sample-rate mask-type mask-factor langrl-env-config "
    "max-tokens-to-oom output-bert-embeddings",
};

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

bool is_harmless_to_megatron(std::string_view flag) {
  flag.remove_prefix(std::min<std::size_t>(2, flag.size()));
  return std::ranges::any_of(harmless, [&](std::string_view patterns) {
    while (!patterns.empty()) {
      const std::size_t end = std::min(patterns.find(' '), patterns.size());
      const std::string_view pattern = patterns.substr(0, end);
      const bool open = pattern.ends_with('*');
      if (open ? flag.starts_with(pattern.substr(0, end - 1)) : flag == pattern) return true;
      patterns.remove_prefix(std::min(end + 1, patterns.size()));
    }
    return false;
  });
}

}  // namespace planner
