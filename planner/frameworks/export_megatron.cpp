#include "planner/frameworks/export_megatron.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "costmodel/model/model_keys.hpp"
#include "costmodel/plan/plan_text.hpp"
#include "planner/exchange/exported.hpp"
#include "planner/frameworks/framework_version.hpp"
#include "planner/frameworks/megatron_hybrid.hpp"
#include "planner/frameworks/megatron_rules.hpp"
#include "planner/frameworks/megatron_script.hpp"
#include "planner/frameworks/megatron_words.hpp"

namespace planner {

using namespace costmodel;

namespace {

class Writer {
 public:
  explicit Writer(MegatronExport& out) : out_(out) {}

  void flag(std::string_view name) { out_.arguments.emplace_back(name); }
  void flag_if(bool wanted, std::string_view name) {
    if (wanted) flag(name);
  }
  template <class T>
  void put(std::string_view name, const T& value) {
    out_.arguments.push_back(fmt::format("{} {}", name, value));
  }
  void note(std::string text) { out_.notes.push_back(std::move(text)); }
  void note_if(bool wanted, std::string_view text) {
    if (wanted) note(std::string(text));
  }
  // A number of the model that Megatron-LM has no argument for, unless it is the `usual` one.
  void unsaid(std::string_view key, double value, double usual = 0) {
    if (value != usual && value != 0) out_.unsaid.push_back(fmt::format("{} {}", key, value));
  }

 private:
  MegatronExport& out_;
};

// Only the default split of the layers uses these flags; stage_layers is exported as a layout.
void write_uneven_split(const ParallelPlan& p, const ModelSpec& model, Writer& out) {
  if (!p.stage_layers.empty() || !model.layer_pattern.empty()) return;
  const auto split = uneven_split(p, model);
  const bool both = split == UnevenSplit::embedding_and_loss;
  out.flag_if(both, "--account-for-embedding-in-pipeline-split");
  out.flag_if(both || split == UnevenSplit::loss, "--account-for-loss-in-pipeline-split");
}

void write_layers(const ParallelPlan& p, const ModelSpec& m, Writer& out) {
  out.put("--hybrid-layer-pattern", hybrid_layer_pattern(p, m));
  out.put("--spec", "megatron.core.models.hybrid.hybrid_layer_specs hybrid_stack_spec");
  if (m.state_size > 0) {
    out.put(megatron_flag("model.mamba_heads"), m.mamba_heads);
    out.put(megatron_flag("model.mamba_head_dim"), m.mamba_head_dim);
    out.put(megatron_flag("model.ssm_groups"), m.ssm_groups);
    out.put(megatron_flag("model.state_size"), m.state_size);
  }
  if (m.linear_num_value_heads == 0) return;
  out.put(megatron_flag("model.linear_num_key_heads"), m.linear_num_key_heads);
  out.put(megatron_flag("model.linear_num_value_heads"), m.linear_num_value_heads);
  out.put(megatron_flag("model.linear_key_head_dim"), m.linear_key_head_dim);
  out.put(megatron_flag("model.linear_value_head_dim"), m.linear_value_head_dim);
  out.put("--linear-conv-kernel-dim", m.conv_kernel);
}

void write_parallel(const ParallelPlan& p, const Scenario& s, Writer& out) {
  out.put(megatron_flag("plan.tp"), p.tp);
  out.put(megatron_flag("plan.pp"), p.pp);
  if (p.cp > 1) {
    out.put(megatron_flag("plan.cp"), p.cp);
    out.put(megatron_flag("plan.cp_comm"),
            context_exchange_names[static_cast<std::size_t>(p.cp_comm)]);
  }
  out.flag_if(p.sequence_parallel, megatron_flag("plan.sequence_parallel"));
  if (!s.model.layer_pattern.empty()) {
    write_layers(p, s.model, out);
  } else if (has_uneven_stages(p)) {
    out.put(megatron_flag("plan.stage_layers"), pipeline_layout(p, s.model.mtp_layers));
  } else if (p.vpp > 1) {
    out.put(megatron_flag("plan.vpp"), p.vpp);
  }
  if (p.choices.group > 0)
    out.put("--microbatch-group-size-per-virtual-pipeline-stage", p.choices.group);
  write_uneven_split(p, s.model, out);
  out.flag_if(rank_order_of(p) == RankOrder::tensor_pipeline_data, "--use-tp-pp-dp-mapping");
  out.put(megatron_flag("plan.micro_batch"), p.micro_batch);
  out.put(megatron_flag("training.global_batch"), s.training.global_batch);
}

// The layers with experts, in the form of --moe-layer-freq.
std::string expert_pattern(const ModelSpec& m) {
  if (m.moe_every == 1)
    return fmt::format("([0]*{}+[1]*{})", m.first_dense_layers, m.layers - m.first_dense_layers);
  std::string list;
  for (std::int64_t i = 0; i < m.layers; ++i)
    list += fmt::format("{}{}", i > 0 ? "," : "", m.has_experts(i) ? 1 : 0);
  return fmt::format("[{}]", list);
}

void write_dispatcher(const ExpertRecipe& recipe, Writer& out) {
  const auto name = dispatcher_names[static_cast<std::size_t>(recipe.dispatcher)];
  const bool flex = sends_once_a_rank(recipe.dispatcher);
  out.put("--moe-token-dispatcher-type", flex ? "flex" : name);
  if (flex) {
    out.put("--moe-flex-dispatcher-backend", name);
    if (recipe.multiprocessors > 0)
      out.put("--moe-flex-dispatcher-num-sms", recipe.multiprocessors);
  }
  out.flag_if(recipe.overlap, megatron_flag("plan.expert_overlap"));
  out.flag_if(recipe.overlap && recipe.delayed_weight_gradient,
              megatron_flag("plan.delayed_weight_gradient"));
  out.flag_if(recipe.shared_overlap, megatron_flag("plan.shared_expert_overlap"));
}

// How many rows experts compute, and where they are kept.
void write_expert_training(const ModelSpec& m, const TrainingSpec& t, Dispatcher dispatcher,
                           Writer& out) {
  if (m.mtp_layers > 0) out.put(megatron_flag("model.mtp_layers"), m.mtp_layers);
  if (m.experts == 0) return;
  if (t.capacity_factor > 0) {
    out.put(megatron_flag("training.capacity_factor"), t.capacity_factor);
    // DeepEP has no padding (transformer_config.py).
    out.flag_if(!t.expert_load.given() && dispatcher != Dispatcher::deepep,
                "--moe-pad-expert-input-to-capacity");
  }
  if (t.expert_buffer_factor > 0)
    out.put(megatron_flag("training.expert_buffer_factor"), t.expert_buffer_factor);
  out.flag_if(t.paged_stash, megatron_flag("training.paged_stash"));
  out.flag_if(t.fused_grouped_mlp, megatron_flag("training.fused_grouped_mlp"));
}

// DeepSeek-V3 balances its experts by a bias that is no part of the loss, and a small loss within
// each sequence (arXiv:2412.19437, section 4.2).
void write_router(const ModelSpec& m, Writer& out) {
  const bool sigmoid = m.router_score == RouterScore::sigmoid;
  if (sigmoid) out.put("--moe-router-score-function", "sigmoid");
  out.flag_if(m.router_score == RouterScore::pre_softmax, "--moe-router-pre-softmax");
  if (m.router_scaling != 1) out.put(megatron_flag("model.router_scaling"), m.router_scaling);
  if (m.router_bias) {
    out.flag(megatron_flag("model.router_bias"));
    out.put("--moe-router-bias-update-rate", "1e-3");
  }
  // Without it Megatron-LM warns of instability for so many experts (transformer_config.py).
  constexpr std::int64_t many_experts = 32;
  if (m.experts >= many_experts) out.put("--moe-router-dtype", "fp32");
  out.put("--moe-router-load-balancing-type", m.router_bias ? "seq_aux_loss" : "aux_loss");
  out.put("--moe-aux-loss-coeff", m.router_bias ? "1e-4" : "1e-2");
}

void write_experts(const ParallelPlan& p, const ModelSpec& m, const TrainingSpec& t, Writer& out) {
  if (m.experts == 0) return;
  out.put(megatron_flag("plan.ep"), p.ep);
  out.put(megatron_flag("plan.etp"), p.etp);
  out.put(megatron_flag("model.experts"), m.experts);
  out.put(megatron_flag("model.top_k"), m.top_k);
  out.put(megatron_flag("model.expert_ffn_hidden"), m.expert_ffn_hidden);
  if (m.mixes_layers() && m.layer_pattern.empty()) out.put("--moe-layer-freq", expert_pattern(m));
  if (m.moe_latent_size > 0) out.put(megatron_flag("model.moe_latent_size"), m.moe_latent_size);
  if (m.shared_experts > 0) out.put("--moe-shared-expert-intermediate-size", m.shared_ffn());
  out.flag("--moe-grouped-gemm");
  if (m.expert_groups > 0) {
    out.put(megatron_flag("model.expert_groups"), m.expert_groups);
    out.put(megatron_flag("model.expert_groups_per_token"), m.expert_groups_per_token);
  }
  write_dispatcher(p.experts, out);
  write_router(m, out);
  out.note(t.expert_load.given()
               ? "expert_load is not exported: it is what the router does"
               : "the plan takes the router to send every expert as many tokens "
                 "(--moe-router-force-load-balancing makes it so in a benchmark)");
}

void write_sizes(const ModelSpec& m, const TrainingSpec& t, Writer& out) {
  if (m.layer_pattern.empty()) out.put(megatron_flag("model.layers"), m.layers);
  out.put(megatron_flag("model.hidden"), m.hidden);
  out.put(megatron_flag("model.ffn_hidden"), m.ffn_hidden);
  out.put(megatron_flag("model.heads"), m.heads);
  out.put("--kv-channels", m.value_dim());
  if (m.latent_attention()) {
    out.flag("--multi-latent-attention");
    if (m.q_lora_rank > 0) out.put(megatron_flag("model.q_lora_rank"), m.q_lora_rank);
    out.put(megatron_flag("model.kv_lora_rank"), m.kv_lora_rank);
    out.put(megatron_flag("model.qk_head_dim"), m.qk_head_dim);
    out.put(megatron_flag("model.qk_pos_emb_head_dim"), m.qk_pos_emb_head_dim);
    out.put(megatron_flag("model.v_head_dim"), m.v_head_dim);
  }
  if (m.kv_heads != m.heads) {
    out.flag("--group-query-attention");
    out.put(megatron_flag("model.kv_heads"), m.kv_heads);
  }
  out.put(megatron_flag("training.sequence"), t.sequence);
  out.put(megatron_flag("model.max_positions"), std::max(m.max_positions, t.sequence));
}

// Megatron gates with SiLU (--swiglu) or an approximate GELU (--quick-geglu); plain MLPs have
// GELU or a squared ReLU. Another function of the same shape costs nearly the same. GPT-OSS's SiLU
// of 1.702 times its input is that GELU, and --glu-linear-offset asks for it.
void write_activation(const ModelSpec& m, Writer& out) {
  const auto name = activation_names[static_cast<std::size_t>(m.activation)];
  const bool squared = m.activation == ActivationFunction::squared_relu;
  if (m.gated_mlp) {
    const bool gelu = m.activation == ActivationFunction::gelu || m.glu_offset != 0;
    out.flag(gelu ? "--quick-geglu" : "--swiglu");
    if (!gelu && m.activation != ActivationFunction::silu)
      out.note(fmt::format("Megatron-LM has no gated {}: SiLU instead", name));
  } else {
    out.flag_if(squared, "--squared-relu");
    if (!squared && m.activation != ActivationFunction::gelu)
      out.note(fmt::format("Megatron-LM has no ungated {}: GELU instead", name));
  }
}

// The layers without a window, in the form of --window-attn-skip-freq: a number N for one after
// N - 1 with it, or a list of 1 (with) and 0.
std::string window_pattern(const ModelSpec& m) {
  const std::string& letters = m.attention_pattern;
  if (letters.find('F') + 1 == letters.size()) return fmt::format("{}", letters.size());
  std::string list;
  for (std::int64_t i = 0; i < m.layers; ++i)
    list += fmt::format("{}{}", i > 0 ? "," : "", m.attention_at(i) == 'S' ? 1 : 0);
  return fmt::format("[{}]", list);
}

// Transformer Engine's window: so many keys before the query's own, and none after.
void write_window(const ModelSpec& m, Writer& out) {
  if (m.sliding_window == 0) return;
  out.put("--window-size", fmt::format("({},0)", m.sliding_window - 1));
  if (!m.attention_pattern.empty()) out.put("--window-attn-skip-freq", window_pattern(m));
}

std::string_view position_type(Positions positions) {
  switch (positions) {
    case Positions::learned: return "learned_absolute";
    case Positions::rotary: return "rope";
    case Positions::relative: return "relative";
    case Positions::alibi:
    case Positions::none: return "none";
  }
  return "none";
}

// Megatron-LM's bands of frequency are Llama 3.1's (core/models/common/embeddings/
// rotary_pos_embedding.py, _apply_scaling).
void write_llama3_scaling(const ModelSpec& m, Writer& out) {
  out.flag("--use-rope-scaling");
  out.put(megatron_flag("model.rope_scaling_factor"), m.rope_scaling_factor);
  out.unsaid("rope_original_positions", static_cast<double>(m.rope_original_positions), 8192);
  out.unsaid("rope_low_freq_factor", m.rope_low_freq_factor, 1);
  out.unsaid("rope_high_freq_factor", m.rope_high_freq_factor, 4);
}

// Latent attention has the other numbers of YaRN at DeepSeek's, in MLATransformerConfig.
void write_yarn(const ModelSpec& m, Writer& out) {
  const auto original = static_cast<double>(m.rope_original_positions);
  out.put("--rotary-scaling-factor", m.rope_scaling_factor);
  if (m.rope_mscale > 0) out.put("--mscale", m.rope_mscale);
  if (m.rope_mscale_all_dim > 0) out.put("--mscale-all-dim", m.rope_mscale_all_dim);
  if (m.latent_attention()) {
    out.put("--rope-type", "yarn");
    out.unsaid("rope_original_positions", original, 4096);
    out.unsaid("rope_beta_fast", m.rope_beta_fast, 32);
    return out.unsaid("rope_beta_slow", m.rope_beta_slow, 1);
  }
  if (m.rope_original_positions > 0) out.put("--yarn-original-max-position-embeddings", original);
  if (m.rope_beta_fast > 0) out.put("--yarn-beta-fast", m.rope_beta_fast);
  if (m.rope_beta_slow > 0) out.put("--yarn-beta-slow", m.rope_beta_slow);
}

void write_rotary(const ModelSpec& m, Writer& out) {
  out.put(megatron_flag("model.rotary_base"), m.rotary_base);
  if (m.rotary_percent < 1) out.put(megatron_flag("model.rotary_percent"), m.rotary_percent);
  using enum RopeScaling;
  const bool integer = m.rope_scaling_factor == std::floor(m.rope_scaling_factor);
  if (m.rope_scaling == llama3) {
    write_llama3_scaling(m, out);
  } else if (m.rope_scaling == yarn) {
    write_yarn(m, out);
  } else if (m.rope_scaling == linear && integer) {
    out.put("--rotary-seq-len-interpolation-factor", m.rope_scaling_factor);
  } else if (m.rope_scaling != none) {
    const auto word = rope_scaling_names[static_cast<std::size_t>(m.rope_scaling)];
    out.unsaid(fmt::format("rope_scaling_type {}, factor", word),
               std::max(1.0, m.rope_scaling_factor));
  }
}

void write_architecture(const ModelSpec& m, Writer& out) {
  const bool yarn = m.rope_scaling == RopeScaling::yarn && !m.latent_attention();
  out.put("--position-embedding-type", yarn ? "yarn" : position_type(m.positions));
  if (m.positions == Positions::rotary) write_rotary(m, out);
  const bool layernorm = m.normalization == Normalization::layernorm;
  out.put("--normalization", layernorm ? "LayerNorm" : "RMSNorm");
  if (m.norm_epsilon > 0) out.put(megatron_flag("model.norm_epsilon"), m.norm_epsilon);
  out.flag_if(m.layernorm_1p, megatron_flag("model.layernorm_1p"));
  write_activation(m, out);
  write_window(m, out);
  if (!m.linear_bias) {
    out.flag("--disable-bias-linear");
    out.flag_if(m.qkv_bias, megatron_flag("model.qkv_bias"));
  }
  // With latent attention the flag stands for the norms of the latent vectors.
  out.flag_if(m.qk_norm || m.latent_attention(), "--qk-layernorm");
  out.flag_if(!m.tie_embeddings, "--untie-embeddings-and-output-weights");
  out.put("--make-vocab-size-divisible-by", 128);
  out.put("--attention-dropout", m.dropout);
  out.put("--hidden-dropout", m.dropout);
  out.note_if(m.positions == Positions::alibi,
              "Megatron-LM has no ALiBi: no position embedding instead, of the same shape");
  out.note_if(m.parallel_block,
              "Megatron-LM has no parallel block: attention and MLP run one after the other");
}

// Numbers of the model that change neither time nor memory.
void write_numbers(const ModelSpec& m, Writer& out) {
  for (const ModelNumber& n : model_numbers()) {
    if (m.*n.field == n.usual) continue;
    const std::string key = fmt::format("model.{}", n.name);
    if (has_megatron_flag(key)) {
      out.put(megatron_flag(key), m.*n.field);
    } else {
      out.unsaid(n.name, m.*n.field);
    }
  }
  if (m.attention_sinks) out.put("--softmax-type", "learnable");
}

void write_precision(const TrainingSpec& t, Writer& out) {
  const bool half = t.precision == Precision::fp16;
  const bool full = t.precision == Precision::fp32;
  if (!full) out.flag(half ? "--fp16" : "--bf16");
  if (t.precision == Precision::fp8) {
    out.put("--fp8-format", "hybrid");
    out.put("--fp8-recipe", "tensorwise");
  }
  if (t.precision == Precision::mxfp8) {
    out.put("--fp8-format", "e4m3");
    out.put("--fp8-recipe", "mxfp8");
  }
  if (t.precision == Precision::nvfp4) {
    out.put("--fp4-format", "e2m1");
    out.put("--fp4-recipe", "nvfp4");
  }
  const bool wide_gradients = t.gradient_precision == Precision::fp32;
  if (!full && wide_gradients) out.flag("--accumulate-allreduce-grads-in-fp32");
  if (!full && !half && !wide_gradients) out.flag("--grad-reduce-in-bf16");
  const bool narrow_weights = is_narrow(t.gather_precision);
  out.flag_if(narrow_weights, "--fp8-param-gather");
  out.flag_if(t.gather_precision == Precision::mxfp8, "--reuse-grad-buf-for-mxfp8-param-ag");
  out.note_if(t.narrow_attention,
              "Megatron-LM has no argument for fp8 attention: set fp8_dot_product_attention in the "
              "transformer's config");
}

// ZeRO-1 is the distributed optimizer; ZeRO-2 and 3 are Megatron-FSDP, which includes it.
void write_optimizer(const ParallelPlan& p, const TrainingSpec& t, Writer& out) {
  using costmodel::Optimizer;
  const bool muon = t.optimizer == Optimizer::muon;
  out.put("--optimizer", is_sgd(t.optimizer) ? "sgd" : to_string(t.optimizer));
  if (t.optimizer == Optimizer::plain_sgd) out.put("--sgd-momentum", "0");
  if (muon) out.put("--muon-tp-mode", "blockwise");
  out.flag_if(muon, "--muon-no-split-qkv");
  out.note_if(muon, "Muon needs the package emerging-optimizers");
  out.flag_if(p.zero >= 1, "--use-distributed-optimizer");
  if (p.offload.optimizer > 0) {
    out.flag("--optimizer-cpu-offload");
    out.put("--optimizer-offload-fraction", fmt::format("{:g}", p.offload.optimizer));
    if (t.moment_precision == Precision::fp32) out.flag("--use-precision-aware-optimizer");
  }
  if (p.offload.activation_layers > 0)
    out.put("--cpu-offloading-num-layers", p.offload.activation_layers);
  if (p.offload.modules != 0) {
    out.flag("--fine-grained-activation-offloading");
    out.put("--offload-modules",
            fmt::format("{}", fmt::join(offload_modules(p.offload.modules), " ")));
  }
  if (t.moment_precision != Precision::fp32) {
    const auto name = to_string(t.moment_precision);
    out.flag("--use-precision-aware-optimizer");
    out.put("--exp-avg-dtype", name);
    out.put("--exp-avg-sq-dtype", name);
  }
  if (p.dp_replicate > 1) out.put("--num-distributed-optimizer-instances", p.dp_replicate);
  if (p.zero < 2) return;
  if (p.shards_states_further()) out.put("--outer-dp-sharding-strategy", outer_sharding_name(p));
  out.flag("--use-megatron-fsdp");
  out.put("--data-parallel-sharding-strategy", p.zero == 2 ? "optim_grads" : "optim_grads_params");
  if (t.gradient_precision == Precision::fp32 && t.precision != Precision::fp32)
    out.put("--megatron-fsdp-main-grads-dtype", "fp32");
  out.put("--ckpt-format", "fsdp_dtensor");
  out.flag("--init-model-with-meta-device");
  out.note_if(p.tp > 1,
              "Megatron-FSDP needs CUDA_DEVICE_MAX_CONNECTIONS other than 1, tensor parallelism "
              "on Hopper and older GPUs is fastest with 1: one of the two overlaps less");
}

void write_recompute(const Recompute& recompute, Writer& out) {
  if (recompute.granularity == Recomputation::none) return;
  if (recompute.granularity == Recomputation::selective) {
    out.put("--recompute-granularity", "selective");
    if (recompute.modules != 0) {
      out.put("--recompute-modules",
              fmt::format("{}", fmt::join(module_names(recompute.modules), " ")));
    }
    return;
  }
  out.put("--recompute-granularity", "full");
  out.put("--recompute-method", recompute.layers > 0 ? "block" : "uniform");
  out.put("--recompute-num-layers", recompute.layers > 0 ? recompute.layers : 1);
}

// transformer_config.py, cuda_graph_modules.
std::string graph_scopes(const Overlap& o) {
  std::string scopes;
  if (o.graph_attention) scopes += " attn";
  if (o.graph_mlp) scopes += " mlp";
  if (o.graph_scan) scopes += " mamba";
  if (o.graph_router) scopes += " moe_router moe_preprocess";
  return scopes;
}

void write_overlap(const ParallelPlan& p, const Overlap& o, Writer& out) {
  const bool gather = p.zero > 0 && o.overlap_param_gather;
  out.flag_if(o.overlap_grad_reduce, megatron_flag("training.overlap.overlap_grad_reduce"));
  out.flag_if(gather, megatron_flag("training.overlap.overlap_param_gather"));
  out.flag_if(o.tp_comm_overlap && p.sequence_parallel,
              megatron_flag("training.overlap.tp_comm_overlap"));
  out.note_if(o.tp_comm_overlap && p.tp > 1 && !p.sequence_parallel,
              "--tp-comm-overlap is left out: it needs sequence parallelism");
  out.flag_if(p.vpp > 1 && !o.pp_overlap, "--no-overlap-p2p-communication");
  out.note_if(p.pp > 1 && p.vpp == 1 && o.pp_overlap,
              "Megatron-LM overlaps pipeline transfers in the interleaved schedule only");
  out.note_if(p.zero >= 2 && !(o.overlap_grad_reduce && (gather || p.zero == 2)),
              "Megatron-FSDP overlaps its collectives of itself, which the plan does not assume");
  const std::string scopes = graph_scopes(o);
  if (o.cuda_graph || o.graphs_parts()) out.put("--cuda-graph-impl", "transformer_engine");
  if (!scopes.empty()) out.put("--cuda-graph-modules", scopes.substr(1));
  out.flag_if(o.cuda_graph || o.graphs_parts(), "--te-rng-tracker");
  out.note_if(o.compile, "Megatron-LM has no argument for torch.compile");
}

// The stack's fusions; those that Megatron-LM enables by default are written when they are off.
void write_kernels(const Scenario& s, Writer& out) {
  const StackKernels& kernels = s.training.stack.kernels;
  const bool flash = kernels.attention != AttentionKernel::unfused;
  const bool full = s.training.precision == Precision::fp32;
  // auto leaves cuDNN's and FlashAttention's kernels to Transformer Engine's choice, as predicted;
  // `flash` would exclude cuDNN's.
  out.put("--attention-backend", flash && !full ? "auto" : "unfused");
  out.note_if(flash && full, "flash attention has no fp32 kernel: unfused instead");
  out.flag_if(!kernels.fused_softmax, "--no-masked-softmax-fusion");
  if (!kernels.fused_bias_activation)
    out.flag(s.model.gated_mlp ? "--no-bias-swiglu-fusion" : "--no-bias-gelu-fusion");
  out.flag_if(!kernels.fused_bias_dropout_add, "--no-bias-dropout-fusion");
  out.flag_if(!kernels.fused_rotary, "--no-rope-fusion");
  out.flag_if(kernels.fused_router && s.model.experts > 0, "--moe-router-fusion");
}

void write_loss(costmodel::LossKernel kernel, MegatronProgram program, Writer& out) {
  using costmodel::LossKernel;
  if (kernel == LossKernel::unfused) return;
  const bool narrow = kernel == LossKernel::te || kernel == LossKernel::flash,
             te = narrow && program != MegatronProgram::pretrain_gpt;
  out.flag("--cross-entropy-loss-fusion");
  out.put("--cross-entropy-fusion-impl", te ? "te" : "native");
  out.note_if(narrow && !te,
              "Megatron-LM refuses Transformer Engine's loss since core 0.18.2: its native fusion "
              "instead, which keeps an fp32 softmax (training.loss: native plans with it)");
}

void write_environment(const ParallelPlan& p, const TrainingSpec& t, MegatronExport& out) {
  const Overlap& overlap = t.overlap;
  // One hardware queue keeps collectives ahead of the product that they overlap with; Megatron-LM
  // requires it for tensor parallelism before Blackwell and forbids it for FSDP, where 8 is the
  // driver's default.
  out.environment.push_back(fmt::format("CUDA_DEVICE_MAX_CONNECTIONS={}", p.zero >= 2 ? 8 : 1));
  out.environment.emplace_back("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
  // Megatron-LM refuses CUDA graphs in such segments without it (megatron/training/arguments.py).
  if (overlap.cuda_graph || overlap.graphs_parts())
    out.environment.emplace_back("NCCL_GRAPH_REGISTER=0");
  // Without it the fused products of gated experts are refused (moe/experts.py, since core 0.19).
  if (t.fused_grouped_mlp) out.environment.emplace_back("NVTE_CUTEDSL_FUSED_GROUPED_MLP=1");
}

// The pretrained weights of a model that is fine-tuned were trained with these numbers.
void note_unsaid(const std::vector<std::string>& unsaid, const Scenario& scenario,
                 std::vector<std::string>& notes) {
  for (const auto& number : unsaid) {
    const std::string reason = fmt::format("model.{}: Megatron-LM has no argument for it", number);
    if (scenario.training.fine_tuning.method != FineTuningMethod::pretraining) {
      throw ConfigError({scenario.file, 0, 0}, reason, another_target);
    }
    notes.push_back(reason + ", and trains another model");
  }
}

}  // namespace

MegatronExport export_megatron(const Scenario& scenario, const ParallelPlan& plan,
                               MegatronProgram program) {
  refuse_first(megatron_violations(scenario, plan), scenario);
  if (program == MegatronProgram::configurations && !scenario.model.layer_pattern.empty()) {
    throw ConfigError({scenario.file, 0, 0}, "a hybrid model has another configuration class",
                      another_target);
  }
  MegatronExport exported;
  Writer out(exported);
  write_parallel(plan, scenario, out);
  write_sizes(scenario.model, scenario.training, out);
  write_experts(plan, scenario.model, scenario.training, out);
  write_expert_training(scenario.model, scenario.training, plan.experts.dispatcher, out);
  write_architecture(scenario.model, out);
  write_numbers(scenario.model, out);
  write_precision(scenario.training, out);
  write_optimizer(plan, scenario.training, out);
  write_recompute(plan.recompute, out);
  write_overlap(plan, scenario.training.overlap, out);
  write_kernels(scenario, out);
  write_loss(scenario.training.stack.kernels.loss, program, out);
  const ModelSpec& m = scenario.model;
  out.note_if(
      program != MegatronProgram::configurations && m.rope_scaling == RopeScaling::llama3 &&
          m.rope_scaling_factor != 8,
      "pretrain_gpt.py of core 0.20 scales rotary positions by 8 whatever "
      "--rope-scaling-factor is (megatron/training/argument_utils.py): see to it before you "
      "train");
  out.note_if(scenario.training.packing.any(), samples_note);
  if (program != MegatronProgram::configurations)
    note_stack(scenario.training.stack, megatron_stack, exported.notes);
  note_unsaid(exported.unsaid, scenario, exported.notes);
  write_environment(plan, scenario.training, exported);
  return exported;
}

MegatronExport export_megatron_for(const Scenario& scenario, const ParallelPlan& plan,
                                   const std::string& version) {
  const FrameworkVersion& release = framework_version("megatron", version);
  const bool refuses = std::ranges::any_of(release.conditions, [](const FlagCondition& rule) {
    return rule.given == "cross-entropy-fusion-impl te";
  });
  MegatronExport exported = export_megatron(
      scenario, plan,
      refuses ? MegatronProgram::pretrain_gpt : MegatronProgram::early_pretrain_gpt);
  exported.framework = release.title;
  exported.null_tokenizer_adds = release.null_tokenizer_adds;
  if (release.null_tokenizer_adds > 0) {
    exported.notes.push_back(
        fmt::format("NullTokenizer of {} adds a token to --vocab-size", release.title));
  }
  FrameworkCall call{std::move(exported.arguments), std::move(exported.environment)};
  for (std::string& note : write_for(release, call)) exported.notes.push_back(std::move(note));
  exported.arguments = std::move(call.arguments);
  exported.environment = std::move(call.environment);
  return exported;
}

}  // namespace planner
