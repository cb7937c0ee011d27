#include "planner/frameworks/megatron_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

#include "costmodel/plan/plan_text.hpp"
#include "costmodel/plan/process_groups.hpp"
#include "costmodel/plan/split_rank.hpp"
#include "costmodel/plan/stage_plan.hpp"
#include "planner/exchange/exported.hpp"

namespace planner {

using namespace costmodel;

namespace {

class Rules {
 public:
  void require(bool holds, std::string_view key, std::string reason, std::string remedy) {
    if (!holds) found.push_back({std::string(key), std::move(reason), std::move(remedy)});
  }
  std::vector<Violation> found;
};

// arguments.py: TP · PP · CP must divide the world size, and DP is the quotient. torchrun starts
// equally many processes per node.
void check_world(const Scenario& s, const ParallelPlan& p, Rules& rules) {
  rules.require(!by_stage(p, s.cluster), "stages", "Megatron-LM's stages and devices are all alike",
                "leave plan.stages out, and choose a cluster of one kind of device");
  if (by_stage(p, s.cluster)) return;
  const std::int64_t model_parallel = std::int64_t{p.tp} * p.pp * p.cp;
  const std::string cp = p.cp > 1 ? fmt::format(" x cp {}", p.cp) : "";
  const std::int64_t world = s.cluster.devices;
  rules.require(world % model_parallel == 0, "tp",
                fmt::format("Megatron-LM: world size {} is not divisible by tp {} x pp {}{}", world,
                            p.tp, p.pp, cp),
                "choose tp x pp among the divisors of the world size");
  rules.require(world % model_parallel != 0 || p.dp == world / model_parallel, "dp",
                fmt::format("Megatron-LM makes dp {} of {} devices, tp {} and pp {}{}; the plan "
                            "says {}",
                            world / model_parallel, world, p.tp, p.pp, cp, p.dp),
                "leave dp out");
  const std::int64_t node = s.cluster.devices_per_node;
  rules.require(world <= node || world % node == 0, "dp",
                fmt::format("{} devices do not fill nodes of {}: torchrun starts as many "
                            "processes on each",
                            world, node),
                "use whole nodes");
}

void check_batch(const Scenario& s, const ParallelPlan& p, Rules& rules) {
  const std::int64_t share = p.micro_batch * p.dp;
  const std::int64_t batch = s.training.global_batch;
  rules.require(batch > 0 && batch % share == 0, "micro_batch",
                fmt::format("Megatron-LM: global batch {} is not divisible by micro-batch {} x "
                            "data-parallel size {}",
                            batch, p.micro_batch, p.dp),
                "choose a micro_batch that divides global_batch / dp");
}

// transformer_config.py; the key/value rule is that of TE attention, which copies heads when
// there are fewer groups than ranks.
void check_tensor(const Scenario& s, const ParallelPlan& p, Rules& rules) {
  const auto& m = s.model;
  rules.require(
      m.heads % p.tp == 0, "tp",
      fmt::format("Megatron-LM: num_attention_heads {} must be a multiple of tp {}", m.heads, p.tp),
      "choose a tp that divides the heads");
  rules.require(m.kv_heads % p.tp == 0 || p.tp % m.kv_heads == 0, "tp",
                fmt::format("Megatron-LM: num_query_groups {} must be a multiple or a divisor of "
                            "tp {}",
                            m.kv_heads, p.tp),
                "choose another tp");
  rules.require(
      m.ffn_hidden % p.tp == 0, "tp",
      fmt::format("Megatron-LM: ffn_hidden_size {} is not divisible by tp {}", m.ffn_hidden, p.tp),
      "choose another tp");
}

void check_sequence(const Scenario& s, const ParallelPlan& p, Rules& rules) {
  const auto& t = s.training;
  rules.require(!p.sequence_parallel || p.tp > 1, "sequence_parallel",
                "Megatron-LM: cannot use sequence parallelism without tensor parallelism",
                "set sequence_parallel: false");
  rules.require(
      !p.sequence_parallel || t.sequence % p.tp == 0, "sequence_parallel",
      fmt::format("Megatron-LM: sequence length {} is not divisible by tp {}", t.sequence, p.tp),
      "set sequence_parallel: false");
  const bool asked = t.overlap.tp_comm_overlap && !t.stack.overlap.tp_comm_overlap;
  rules.require(!asked || p.sequence_parallel, "sequence_parallel",
                "Megatron-LM: --tp-comm-overlap needs sequence parallelism",
                "set sequence_parallel: true, or overlap.tp_comm_overlap: false");
  rules.require(s.model.positions != Positions::learned || s.model.max_positions >= t.sequence,
                "model",
                fmt::format("Megatron-LM: max_position_embeddings {} must be at least seq_length "
                            "{}",
                            s.model.max_positions, t.sequence),
                "shorten training.sequence");
}

// Transformer Engine's context parallelism: 2·cp chunks per sequence, complete heads in
// all-to-alls, fused kernels only (transformer_engine,
// attention/dot_product_attention/context_parallel.py).
void check_context(const Scenario& s, const ParallelPlan& p, Rules& rules) {
  if (p.cp == 1) return;
  const std::int64_t tokens = s.training.sequence;
  const std::int64_t parts = std::int64_t{2} * p.cp * (p.sequence_parallel ? p.tp : 1);
  rules.require(tokens % parts == 0, "cp",
                fmt::format("Megatron-LM: sequence length {} is not divisible by {} (2 x cp{})",
                            tokens, parts, p.sequence_parallel ? " x tp" : ""),
                "choose another cp");
  const std::int64_t heads = s.model.heads / p.tp;
  const std::int64_t kv_heads = std::max<std::int64_t>(1, s.model.kv_heads / p.tp);
  rules.require(p.cp_comm != ContextExchange::a2a || (heads % p.cp == 0 && kv_heads % p.cp == 0),
                "cp_comm",
                fmt::format("Transformer Engine: the number of attention heads needs to be "
                            "divisible by cp {}; a rank has {} and {} key/value heads",
                            p.cp, heads, kv_heads),
                "set cp_comm: p2p");
  // Neither has an fp32 kernel.
  const bool fused = s.training.stack.kernels.attention != AttentionKernel::unfused &&
                     s.training.precision != Precision::fp32;
  rules.require(fused, "cp", "Megatron-LM: context parallelism needs fused or flash attention",
                "set cp: 1");
}

// transformer_config.py, "overlap_moe_expert_parallel_comm" and "moe_shared_expert_overlap"; of
// DeepEP moe/token_dispatcher.py.
void check_exchange(const Scenario& s, const ParallelPlan& p, Rules& rules) {
  using costmodel::RecomputeModule;
  const ExpertRecipe& e = p.experts;
  rules.require(e.dispatcher != Dispatcher::deepep || p.ep * p.etp > 1, "dispatcher",
                "Megatron-LM: DeepEP needs experts on several ranks", "set dispatcher: alltoall");
  for (const Violation& rule : costmodel::overlap_violations(p))
    rules.require(false, rule.key, "Megatron-LM: " + rule.reason, rule.remedy);
  const bool shared_again = (p.recompute.modules & bit_of(RecomputeModule::shared_experts)) != 0;
  rules.require(!e.shared_overlap || !shared_again, "shared_expert_overlap",
                "Megatron-LM: recomputed shared experts do not go with --moe-shared-expert-overlap",
                "leave shared_experts out of recompute.modules");
  if (!e.overlap) return;
  const auto require = [&](bool holds, const char* reason, const char* remedy) {
    rules.require(holds, "expert_overlap",
                  fmt::format("Megatron-LM: --overlap-moe-expert-parallel-comm {}", reason),
                  remedy);
  };
  const auto& r = p.recompute;
  const bool again =
      r.granularity == Recomputation::selective && (r.modules & bit_of(RecomputeModule::moe)) != 0;
  require(!again, "does not go with recomputed experts", "leave moe out of recompute.modules");
  require(!e.shared_overlap, "does not go with --moe-shared-expert-overlap",
          "set shared_expert_overlap: false");
  require(s.training.precision != Precision::fp32, "needs 16 bits", "set training.precision: bf16");
  require(!s.training.overlap.graph_mlp, "does not go with the graph scope mlp",
          "leave mlp out of overlap.cuda_graph");
  require(s.model.mtp_layers <= 1, "takes one layer of multi-token prediction at most",
          "set model.mtp_layers: 1");
}

// transformer_config.py and moe_layer.py: grouped products have no bias, and the dispatcher needs
// sequence-parallel tokens.
void check_experts(const Scenario& s, const ParallelPlan& p, Rules& rules) {
  const auto& m = s.model;
  if (m.experts == 0) return;
  rules.require(m.experts % p.ep == 0, "ep",
                fmt::format("Megatron-LM: number of experts {} should be a multiple of "
                            "expert-model-parallel size {}",
                            m.experts, p.ep),
                "choose an ep that divides the experts");
  const std::int64_t group = std::int64_t{p.ep} * p.etp * p.pp;
  rules.require(s.cluster.devices % group == 0, "ep",
                fmt::format("Megatron-LM: world size {} is not divisible by etp {} x ep {} x pp {}",
                            s.cluster.devices, p.etp, p.ep, p.pp),
                "choose another ep");
  rules.require(!m.router_bias || m.router_score == costmodel::RouterScore::sigmoid, "model",
                "Megatron-LM: --moe-router-enable-expert-bias works with sigmoid scores",
                "set model.router_bias: false");
  rules.require(p.tp == 1 || p.sequence_parallel, "sequence_parallel",
                "Megatron-LM: experts with tensor parallelism need sequence parallelism",
                "set sequence_parallel: true");
  const TrainingSpec& t = s.training;
  rules.require(t.expert_buffer_factor == 0 || p.experts.dispatcher == Dispatcher::hybridep,
                "dispatcher",
                "Megatron-LM: --moe-expert-rank-capacity-factor needs the dispatcher hybridep",
                "set plan.dispatcher: hybridep, or leave training.expert_buffer_factor out");
  rules.require(t.expert_buffer_factor == 0 || t.fused_grouped_mlp, "dispatcher",
                "Megatron-LM: --moe-expert-rank-capacity-factor needs "
                "--use-transformer-engine-op-fuser",
                "set training.fused_grouped_mlp: true, or leave training.expert_buffer_factor out");
  rules.require(!t.paged_stash || t.expert_buffer_factor > 0, "dispatcher",
                "Megatron-LM: --moe-paged-stash needs --moe-expert-rank-capacity-factor",
                "set training.expert_buffer_factor, or leave paged_stash out");
  rules.require(!t.fused_grouped_mlp || p.etp == 1, "etp",
                "Transformer Engine: experts whose products are one kernel have no tensor ranks",
                "set etp: 1, or training.fused_grouped_mlp: false");
  check_exchange(s, p, rules);
  rules.require(!m.linear_bias || p.etp == 1, "etp",
                "Megatron-LM: biases of experts need an expert tensor parallel size of 1",
                "set etp: 1, or model.linear_bias: false");
}

// The embedding and the loss may count as a layer each (--account-for-...-in-pipeline-split).
std::int64_t counted_layers(const Scenario& s, const ParallelPlan& p) {
  switch (uneven_split(p, s.model)) {
    case UnevenSplit::none:
    case UnevenSplit::balanced:
    case UnevenSplit::impossible: return s.model.layers;
    case UnevenSplit::loss: return s.model.layers + 1;
    case UnevenSplit::embedding_and_loss: return s.model.layers + 2;
  }
  return s.model.layers;
}

void check_even_stages(std::int64_t layers, const ParallelPlan& p, Rules& rules) {
  rules.require(layers % p.pp == 0, "pp",
                fmt::format("Megatron-LM: {} layers are not divisible by the pipeline-parallel "
                            "size {}",
                            layers, p.pp),
                "choose a pp that divides the layers, or give stage_layers");
  rules.require(layers % p.pp != 0 || layers / p.pp % p.vpp == 0, "vpp",
                fmt::format("Megatron-LM: {} layers of a pipeline rank are not divisible by vpp "
                            "{}",
                            layers / p.pp, p.vpp),
                "choose a vpp that divides them, or give stage_layers");
}

void check_layout(std::int64_t layers, const ParallelPlan& p, Rules& rules) {
  const auto cells = static_cast<std::int64_t>(p.stage_layers.size());
  rules.require(
      cells == p.virtual_stages(), "stage_layers",
      fmt::format("Megatron-LM: a layout of {} stages for pp {} x vpp {}", cells, p.pp, p.vpp),
      "list one count for each virtual stage");
  const auto sum = std::accumulate(p.stage_layers.begin(), p.stage_layers.end(), std::int64_t{0});
  rules.require(sum == layers, "stage_layers",
                fmt::format("Megatron-LM: the layout has {} layers, the model {}", sum, layers),
                "make stage_layers add up");
}

void check_schedule(const Scenario& s, const ParallelPlan& p, Rules& rules) {
  const auto name = schedule_text(p);
  const bool interleaved = p.schedule == usual_schedule(2);
  rules.require(interleaved || p.schedule == usual_schedule(1), "schedule",
                fmt::format("Megatron-LM has no schedule '{}'", name),
                "allowed: 1f1b, interleaved");
  rules.require(interleaved == (p.vpp > 1), "vpp",
                fmt::format("Megatron-LM interleaves when vpp > 1 and only then; the plan says "
                            "{} with vpp {}",
                            name, p.vpp),
                "schedule: interleaved goes with vpp > 1");
  if (p.vpp == 1) return;
  const int least = s.training.overlap.pp_overlap ? 2 : 3;
  rules.require(p.pp >= least, "pp",
                fmt::format("Megatron-LM: the interleaved schedule needs pp > {}{}", least - 1,
                            least == 3 ? " when p2p communication is not overlapped" : ""),
                "set vpp: 1, or another pp");
  const std::int64_t m = p.micro_batches(s.training.global_batch);
  // Groups of p leave no remainder; chosen ones may (costmodel/schedule/orders.hpp, takes_groups).
  rules.require(
      m >= p.pp && (p.choices.group > 0 || m % p.pp == 0), "micro_batch",
      fmt::format("Megatron-LM: {} micro-batches do not divide into groups of pp {}", m, p.pp),
      "set vpp: 1, or another micro_batch");
}

void check_optimizer(const Scenario& s, const ParallelPlan& p, Rules& rules) {
  const auto& t = s.training;
  rules.require(p.zero >= 0 && p.zero <= 3, "zero", fmt::format("there is no ZeRO {}", p.zero),
                "allowed: 0 to 3");
  const bool asked = t.overlap.overlap_param_gather && !t.stack.overlap.overlap_param_gather;
  rules.require(!asked || p.zero > 0, "zero",
                "Megatron-LM: --overlap-param-gather needs the distributed optimizer or FSDP",
                "set zero to 1 or more, or overlap.overlap_param_gather: false");
  rules.require(p.zero == 0 || !t.overlap.overlap_param_gather || t.overlap.overlap_grad_reduce,
                "zero", "Megatron-LM: --overlap-param-gather needs --overlap-grad-reduce",
                "set both keys of training.overlap alike");
  rules.require(p.offload.optimizer == 0 || p.zero > 0, "offload",
                "Megatron-LM: --optimizer-cpu-offload needs the distributed optimizer",
                "set zero: 1, or leave offload out");
  rules.require(p.offload.parameters == 0, "offload",
                "Megatron-LM keeps no parameters in host memory", "set offload: optimizer");
  rules.require(!p.zero_plus_plus.any(), "zero", fmt::format("Megatron-LM: {}", no_zero_plus_plus),
                std::string(without_zero_plus_plus));
  using costmodel::Optimizer;
  rules.require(
      t.optimizer == Optimizer::adam || t.optimizer == Optimizer::muon || is_sgd(t.optimizer),
      "optimizer", "Megatron-LM: its optimizers are adam, sgd and muon",
      "set training.optimizer: adam");
  const bool narrow = t.moment_precision != Precision::fp32;
  rules.require(!narrow || t.optimizer == Optimizer::adam, "optimizer",
                "Megatron-LM: --use-precision-aware-optimizer works with Adam only",
                "set training.moment_precision: fp32");
  rules.require(!narrow || p.zero > 0, "zero",
                "Megatron-LM: --use-precision-aware-optimizer needs the distributed optimizer",
                "set zero: 1, or training.moment_precision: fp32");
  rules.require(p.zero == 0 || !is_sgd(t.optimizer), "zero",
                "Megatron-LM: the distributed optimizer and FSDP work with Adam only",
                "set zero: 0, or training.optimizer: adam");
}

void check_recompute(const Scenario& s, const ParallelPlan& p, Rules& rules) {
  const bool full = p.recompute.granularity == Recomputation::full;
  rules.require(p.recompute.layers == 0 || full, "recompute",
                "Megatron-LM: --recompute-method and a number of layers go with full "
                "recomputation only",
                "write recompute: {granularity: full, layers: N}");
  const Overlap& o = s.training.overlap;
  const bool graphs = o.cuda_graph || o.graphs_parts();
  rules.require(!full || !graphs, "recompute",
                "Megatron-LM: CUDA graphs do not go with full recomputation",
                "set overlap.cuda_graph: false, or recompute: selective");
  rules.require(p.offload.activation_layers == 0 || !graphs, "offload",
                "Megatron-LM: CUDA graphs do not go with --cpu-offloading-num-layers",
                "set overlap.cuda_graph: false, or leave activations out of offload");
}

// transformer_config.py: graphs capture parts that the model has, replay no random numbers in what
// is computed again, and lie in no module that is.
void check_graphs(const Scenario& s, const ParallelPlan& p, Rules& rules) {
  using costmodel::RecomputeModule;
  const Overlap& o = s.training.overlap;
  const auto& m = s.model;
  const bool hybrid = !m.layer_pattern.empty();
  const auto has = [&](char letter) { return m.layer_pattern.find(letter) != std::string::npos; };
  const bool dense = hybrid ? has('-') : m.experts == 0 || m.mixes_layers();
  rules.require(!o.graph_mlp || dense, "recompute",
                "Megatron-LM: the graph scope mlp is of dense layers, which the model lacks",
                "leave mlp out of overlap.cuda_graph");
  rules.require(!o.graph_scan || has('M'), "recompute",
                "Megatron-LM: the graph scope mamba is of scans, which the model lacks",
                "leave mamba out of overlap.cuda_graph");
  // Of hybrids it takes every layer to have experts where any has.
  rules.require(!o.graph_mlp || !hybrid || m.experts == 0 || !has('-'), "recompute",
                "Megatron-LM: the graph scope mlp does not go with a hybrid's experts",
                "leave mlp out of overlap.cuda_graph");
  rules.require(!o.graph_router || m.experts > 0, "recompute",
                "Megatron-LM: the graph scope moe_router is of experts, which the model lacks",
                "leave moe_router and moe_preprocess out of overlap.cuda_graph");
  const auto again = [&](RecomputeModule module) {
    const unsigned usual = bit_of(RecomputeModule::core_attn);
    const unsigned modules = p.recompute.modules != 0 ? p.recompute.modules : usual;
    return p.recompute.granularity == Recomputation::selective && (modules & bit_of(module)) != 0;
  };
  const bool drawn = ((o.cuda_graph || o.graph_attention) && again(RecomputeModule::core_attn)) ||
                     ((o.cuda_graph || o.graph_mlp) && again(RecomputeModule::mlp)) ||
                     (o.cuda_graph && again(RecomputeModule::moe));
  rules.require(m.dropout == 0 || !drawn, "recompute",
                "Megatron-LM: CUDA graphs have no dropout in what they compute again",
                "set model.dropout: 0, or recompute other modules");
  rules.require(!o.graph_router || !again(RecomputeModule::moe), "recompute",
                "Megatron-LM: the graph scope moe_router does not go with recomputed experts",
                "leave moe out of recompute.modules");
}

// What says by hand where the ranks of such a plan pass to the decoder.
std::string split_by_hand(const ParallelPlan& plan, const ModelSpec& model) {
  const int split = split_rank_of(plan, model);
  if (split == 0) return "";
  return fmt::format(
      "; by hand, before core 0.14: pretrain_t5.py with --pipeline-model-parallel-size {} "
      "--pipeline-model-parallel-split-rank {}",
      plan.pp, split);
}

// core/ssm/gated_delta_net: heads are split over tensor ranks, the convolution's kernel knows SiLU,
// and columns of a narrow product come in 16.
void check_delta_nets(const Scenario& s, const ParallelPlan& plan, Rules& rules) {
  const auto& m = s.model;
  if (m.kind != ModelKind::hybrid || m.linear_num_value_heads == 0) return;
  rules.require(
      m.linear_num_key_heads % plan.tp == 0 && m.linear_num_value_heads % plan.tp == 0, "tp",
      fmt::format("Megatron-LM: {} key and {} value heads of delta nets are not divisible "
                  "by tp {}",
                  m.linear_num_key_heads, m.linear_num_value_heads, plan.tp),
      "choose a tp that divides both");
  rules.require(m.gated_mlp && m.activation == ActivationFunction::silu, "model",
                "Megatron-LM: gated delta nets need the activation SiLU, of all layers",
                "set gated_mlp: true and activation: silu");
  constexpr std::int64_t columns = 16;
  const std::int64_t wide =
      2 * (m.delta_key_width() + m.delta_value_width() + m.linear_num_value_heads);
  rules.require(!is_narrow(s.training.precision) || wide % columns == 0, "model",
                fmt::format("Megatron-LM: {} columns of a delta net's product are no multiple of "
                            "{} for fp8",
                            wide, columns),
                "set training.precision: bf16");
}

// megatron/training/arguments.py takes no other positions for it than rope and none.
void check_prediction(const ModelSpec& m, Rules& rules) {
  const bool scaled = m.rope_scaling == RopeScaling::yarn && !m.latent_attention();
  const bool other = m.positions == Positions::learned || m.positions == Positions::relative ||
                     (m.positions == Positions::rotary && scaled);
  rules.require(m.mtp_layers == 0 || !other, "model",
                "Megatron-LM: multi-token prediction goes with rotary positions without YaRN, or "
                "with none",
                "set mtp_layers: 0");
}

// Model choices that change parameter shapes and that no argument can express.
void check_model(const Scenario& s, const ParallelPlan& plan, Rules& rules) {
  const auto& m = s.model;
  rules.require(!m.embedding_norm, "model",
                "Megatron-LM has no argument for a normalisation after the embedding",
                "set embedding_norm: false");
  const bool hybrid = m.kind == ModelKind::hybrid;
  ModelSpec plain = m;
  plain.attention_sinks = false;  // --softmax-type
  if (hybrid) plain.moe_latent_size = plain.linear_num_value_heads = 0;
  rules.require(plain.plain_block(), "model",
                "gates, delta nets, latent experts, bidirectional encoders and norms in "
                "other places are not written as Megatron-LM's arguments here",
                "choose a model without them");
  rules.require(m.state_size == 0 || hybrid, "model",
                "a Mamba model is another program of Megatron-LM (pretrain_mamba.py), which is not "
                "written here",
                "choose a model of kind gpt, llama, moe or hybrid");
  constexpr std::int64_t taps = 4;  // core/ssm/mamba_mixer.py, d_conv
  rules.require(!hybrid || m.state_size == 0 || m.conv_kernel == taps, "model",
                fmt::format("Megatron-LM: the convolution of a scan has {} taps", taps),
                "set conv_kernel: 4");
  rules.require(
      !hybrid || m.state_size == 0 ||
          (m.scan_heads() % plan.tp == 0 && m.ssm_groups % plan.tp == 0),
      "tp",
      fmt::format("Megatron-LM: {} heads and {} groups of scans are not divisible by tp {}",
                  m.scan_heads(), m.ssm_groups, plan.tp),
      "choose a tp that divides both");
  rules.require(
      !m.encoder_decoder(), "model",
      "an encoder-decoder model is another program of Megatron-LM (pretrain_t5.py), which "
      "is not written here",
      "choose a model of kind gpt, llama or moe" + split_by_hand(plan, m));
  check_delta_nets(s, plan, rules);
  check_prediction(m, rules);
  rules.require(!m.linear_bias || m.qkv_bias, "model",
                "Megatron-LM: linear layers with bias have it in query, key and value too",
                "set qkv_bias: true");
}

}  // namespace

bool has_uneven_stages(const ParallelPlan& plan) {
  for (const int layers : plan.stage_layers) {
    if (layers != plan.stage_layers.front()) return true;
  }
  return false;
}

std::string pipeline_layout(const ParallelPlan& plan, std::int64_t mtp_layers) {
  std::string layout = "E";
  for (std::size_t s = 0; s < plan.stage_layers.size(); ++s) {
    const int layers = plan.stage_layers[s];
    if (s > 0) layout += '|';
    if (layers == 1) layout += 't';
    if (layers > 1) layout += fmt::format("t*{}", layers);
  }
  if (mtp_layers > 0) layout += fmt::format("{}m*{}", layout.back() == '|' ? "" : ",", mtp_layers);
  return layout + (layout.back() == '|' ? "L" : ",L");
}

RankOrder rank_order_of(const ParallelPlan& plan) {
  std::string order;
  for (std::size_t at = 0; at < plan.rank_order.size(); at += 3) {
    const std::string axis = plan.rank_order.substr(at, 2);
    if (axis == "tp" && plan.tp > 1) order += 't';
    if (axis == "pp" && plan.pp > 1) order += 'p';
    if (axis == "dp" && plan.dp > 1) order += 'd';
    if (axis == "cp" && plan.cp > 1) order += 'c';
  }
  // Leaving letters out of a sorted word leaves a sorted word.
  const auto fits = [&order](std::string_view whole) {
    std::size_t from = 0;
    for (const char axis : order) {
      const std::size_t at = whole.find(axis, from);
      if (at == std::string_view::npos) return false;
      from = at + 1;
    }
    return true;
  };
  if (fits("tcdp")) return RankOrder::tensor_data_pipeline;
  return fits("tcpd") ? RankOrder::tensor_pipeline_data : RankOrder::other;
}

namespace {

// Its parallel_state.py asserts that experts' pipelines are those of all other ranks, which a
// pipeline inside the data-parallel axis makes them only with as many ranks an expert group.
void check_expert_order(const Scenario& scenario, const ParallelPlan& plan, Rules& rules) {
  if (rank_order_of(plan) != RankOrder::tensor_pipeline_data) return;
  // Of a dense model the ranks of experts are those of data and context parallelism.
  rules.require(scenario.model.experts > 0 || plan.cp == 1 || plan.pp == 1, "rank_order",
                "Megatron-LM: a pipeline inside the data axis does not go with context parallelism",
                "leave rank_order out, or set cp: 1");
  if (scenario.model.experts == 0) return;
  ParallelPlan mapped = plan;
  mapped.rank_order = "tp-cp-ep-pp-dp";
  const auto fault = group_fault(mapped, RankLayout::megatron);
  rules.require(fault.reason.empty(), "rank_order", fault.reason, fault.remedy);
}

}  // namespace

std::vector<Violation> megatron_violations(const Scenario& scenario, const ParallelPlan& plan) {
  Rules rules;
  if (plan.pipelines() > 1) {
    rules.require(false, "replicas",
                  "Megatron-LM's replicas are all cut alike and take as many micro-batches each",
                  "leave plan.replicas out, and choose a cluster of one kind of device");
    return rules.found;
  }
  check_world(scenario, plan, rules);
  check_batch(scenario, plan, rules);
  check_tensor(scenario, plan, rules);
  check_sequence(scenario, plan, rules);
  check_context(scenario, plan, rules);
  check_experts(scenario, plan, rules);
  if (plan.stage_layers.empty()) {
    check_even_stages(counted_layers(scenario, plan), plan, rules);
  } else {
    check_layout(scenario.model.layers, plan, rules);
  }
  check_schedule(scenario, plan, rules);
  check_optimizer(scenario, plan, rules);
  check_recompute(scenario, plan, rules);
  check_graphs(scenario, plan, rules);
  rules.require(rank_order_of(plan) != RankOrder::other, "rank_order",
                fmt::format("Megatron-LM has no rank order {}", plan.rank_order),
                "allowed: tp-cp-ep-dp-pp, tp-cp-ep-pp-dp");
  check_expert_order(scenario, plan, rules);
  check_model(scenario, plan, rules);
  return rules.found;
}

}  // namespace planner
