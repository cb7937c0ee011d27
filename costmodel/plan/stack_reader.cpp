#include "costmodel/plan/stack_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "costmodel/base/escape.hpp"

namespace costmodel {

namespace {

constexpr std::array<std::string_view, 7> graph_scopes{
    "full_iteration", "layer", "attn", "mlp", "moe_router", "moe_preprocess", "mamba"};

// false, true (a graph a layer), or the scopes that graphs replay.
void read_graph_scopes(const Value& value, Overlap& overlap) {
  overlap.cuda_graph = overlap.graph_attention = overlap.graph_mlp = false;
  overlap.graph_router = overlap.graph_scan = false;
  if (value.is_scalar()) {
    overlap.cuda_graph = read_boolean(value, "cuda_graph");
    return;
  }
  for (const Value& item : value.items) {
    const auto at = std::ranges::find(graph_scopes, item.text);
    if (at == graph_scopes.end()) {
      throw ConfigError(item.mark, fmt::format("cuda_graph: {} is not a scope", quote(item.text)),
                        known_names(item.text, {graph_scopes.begin(), graph_scopes.end()}));
    }
    if (at < graph_scopes.begin() + 2) overlap.cuda_graph = true;
    if (*at == "attn") overlap.graph_attention = true;
    if (*at == "mlp") overlap.graph_mlp = true;
    if (*at == "mamba") overlap.graph_scan = true;
    if (*at == "moe_router" || *at == "moe_preprocess") overlap.graph_router = true;
  }
}

}  // namespace

const Keys<Overlap>& overlap_keys() {
  using O = Overlap;
  static const auto keys = key::rows<O>(
      key::special<O>("dp_overlap", key::fixed_text("true, false"),
                      "overlap_grad_reduce and overlap_param_gather",
                      [](MapReader& reader, O& o) {
                        if (const auto both = reader.boolean("dp_overlap"))
                          o.overlap_grad_reduce = o.overlap_param_gather = *both;
                      }),
      key::flag<O>("overlap_grad_reduce", &O::overlap_grad_reduce,
                   "data-parallel gradients are reduced during the last micro-batch's backward"),
      key::flag<O>("overlap_param_gather", &O::overlap_param_gather,
                   "sharded parameters are gathered during the first micro-batch's forward"),
      key::flag<O>("tp_comm_overlap", &O::tp_comm_overlap,
                   "tensor-parallel collectives are pipelined with the product they feed"),
      key::flag<O>("pp_overlap", &O::pp_overlap, "pipeline transfers overlap with computation"),
      key::flag<O>("async_tp", &O::async_tp, "torchtitan's micro-pipelined tensor parallelism"),
      key::flag<O>("compile", &O::compile,
                   "torch.compile or XLA: a chain of element-wise operators is one kernel"),
      key::special<O>(
          "cuda_graph", [] { return "true, false, or a list of " + words_text(graph_scopes); },
          "kernels are replayed from CUDA graphs: of a layer, or of these scopes",
          [](MapReader& reader, O& o) {
            if (const Value* graph = reader.optional("cuda_graph")) read_graph_scopes(*graph, o);
          }));
  return keys;
}

namespace {

using Kernels = StackKernels;
using Memory = StackMemory;
using Collectives = StackCollectives;
using Zero = StackZero;
using Host = StackHost;
using Experts = StackExperts;
using Offers = StackOffers;
using Defaults = StackDefaults;
using S = StackSpec;

// Rows of the stack's own map, by the part that they set.

const Keys<Kernels>& kernel_keys() {
  using K = Kernels;
  static const auto keys = key::rows<K>(
      key::word<K>("attention", &K::attention, attention_kernel_names,
                   "flash: the device's best fused kernel; flash2: FlashAttention 2"),
      key::flag<K>("fused_softmax", &K::fused_softmax,
                   "scale, mask and softmax are one kernel (unfused attention)"),
      key::whole<K>("fused_softmax_batches", &K::fused_softmax_batches, {1, 1024},
                    "... only if sequences x heads on a rank is a multiple of this"),
      key::flag<K>("fused_router", &K::fused_router,
                   "few kernels choose experts (moe_router_fusion): as to the host's calls"),
      key::flag<K>("fused_rotary", &K::fused_rotary,
                   "one kernel turns a vector by its position (apply_rope_fusion): likewise"),
      key::flag<K>("triangular_softmax", &K::triangular_softmax,
                   "... and it does not read masked scores"),
      key::flag<K>("causal_skip", &K::causal_skip, "the attention kernel skips the masked half"),
      key::flag<K>("fused_bias_activation", &K::fused_bias_activation,
                   "bias and activation are one kernel"),
      key::flag<K>("fused_bias_dropout_add", &K::fused_bias_dropout_add,
                   "bias, dropout and residual are one kernel"),
      key::word<K>("loss", &K::loss, loss_kernel_names,
                   "kernel of the loss: PyTorch's, Megatron-LM's fusion, Transformer Engine's, "
                   "flash-attn's"),
      key::word<K>("compiled_loss", &K::compiled_loss, loss_kernel_names,
                   "the same with overlap.compile; absent: equal"),
      key::flag<K>("fused_accumulation", &K::fused_accumulation,
                   "products add 16-bit weight gradients into their buffer"),
      key::number<K>(
          "accumulation_bytes", &K::accumulation_bytes, 0, 64,
          "bytes a parameter of the kernel that adds 16-bit gradients to an fp32 buffer; "
          "absent: the product does it"));
  return keys;
}

const Keys<Memory>& kept_keys() {
  using M = Memory;
  static const auto keys = key::rows<M>(
      key::word<M>("gradient_precision", &M::gradient_precision, precision_names,
                   "of the accumulation buffer"),
      key::flag<M>("fp32_logits", &M::fp32_logits,
                   "with an unfused loss, the fp32 logits have a gradient of their own"),
      key::flag<M>("narrow_saved_inputs", &M::narrow_saved_inputs,
                   "fp8 products save their inputs in fp8"),
      key::flag<M>("bf16_optimizer", &M::bf16_optimizer,
                   "bf16 runs shard as ZeRO-1 and accumulate fp32 gradients beside the bf16 ones"),
      key::flag<M>("master_weights", &M::master_weights,
                   "the optimizer keeps fp32 copies of 16-bit parameters"),
      key::flag<M>("fp32_shards", &M::fp32_shards,
                   "ZeRO-3 shards the fp32 parameters; 16-bit ones exist when gathered"),
      key::flag<M>("checkpoint_stops", &M::checkpoint_stops,
                   "recomputation ends where a layer's last kept tensor is made"),
      key::flag<M>("autocast", &M::autocast,
                   "16-bit weights are casts that products keep until their backward"),
      key::flag<M>("frees_gradients", &M::frees_gradients,
                   "gradients are freed with each step and appear anew in backward"),
      key::flag<M>("dummy_gradients", &M::dummy_gradients,
                   "autograd gets a gradient that is never written, one kept for each shape"),
      key::word<M>("widened_gradients", &M::widened_gradients, widened_gradients_names,
                   "the optimizer's step makes fp32 copies of its shard of 16-bit gradients"),
      key::flag<M>("selective_half", &M::selective_half,
                   "`selective` keeps every second product or layer (torchtitan)"));
  return keys;
}

const Keys<Collectives>& collective_keys() {
  using C = Collectives;
  static const auto keys = key::rows<C>(
      key::flag<C>("scatter_gather", &C::scatter_gather,
                   "pipeline transfers are split over the tensor ranks"),
      key::flag<C>("backward_tp_overlap", &C::backward_tp_overlap,
                   "input-gradient collectives overlap with the weight-gradient product"),
      key::flag<C>("embedding_all_reduce", &C::embedding_all_reduce,
                   "first and last stage all-reduce the gradient of tied embeddings"),
      key::flag<C>("one_collective_queue", &C::one_collective_queue,
                   "with tp > 1 gradient reduction overlaps with nothing, and in a pipeline the "
                   "last gradient is sent after it"),
      key::flag<C>("reduction_not_hidden", &C::reduction_not_hidden,
                   "gradient reduction overlaps with nothing, though it is launched in the last "
                   "backward"),
      key::number<C>("gradient_bucket_bytes", &C::gradient_bucket, 1e3, 1e12,
                     "gradients are reduced in messages of this size; absent: all at once"),
      key::flag<C>("post_validation", &C::post_validation,
                   "with split backward, the optimizer steps without waiting for the global "
                   "gradient norm"));
  return keys;
}

const Keys<Zero>& zero_keys() {
  using Z = Zero;
  static const auto keys = key::rows<Z>(
      key::flag<Z>("zero_prefetch", &Z::prefetch,
                   "ZeRO-3 gathers the next layer while this one computes"),
      key::flag<Z>("zero_by_module", &Z::by_module,
                   "ZeRO-3 gathers and scatters per product instead of per layer"),
      key::flag<Z>("root_unit", &Z::root_unit,
                   "ZeRO-3 gathers embedding and head as one unit that stays gathered (FSDP)"),
      key::flag<Z>("whole_in_pipeline", &Z::whole_in_pipeline,
                   "with pp > 1 ZeRO-3 keeps parameters and gradients whole (FSDP2)"),
      key::flag<Z>("zero2_regathers", &Z::regathers,
                   "ZeRO-2 shards parameters too, which each micro-batch's forward gathers (FSDP)"),
      key::flag<Z>("whole_gradients", &Z::whole_gradients,
                   "ZeRO-2 and 3 reduce-scatter only after all gradients are complete"),
      key::flag<Z>("zero_one_port", &Z::one_port,
                   "ZeRO-3 collectives leave a node through one of its ports"),
      key::flag<Z>("zero1_all_reduce", &Z::all_reduce,
                   "ZeRO-1 all-reduces gradients after the last backward, and clips and clears all "
                   "of them on every rank"),
      key::flag<Z>("zero1_broadcasts", &Z::broadcasts,
                   "ZeRO-1: each rank updates complete parameter tensors and broadcasts them, one "
                   "rank after the other"),
      key::number<Z>("zero_slice_s", &Z::slice, 0, 1e-3,
                     "ZeRO-1 and 2 gather each parameter tensor by itself, and the host takes so "
                     "long for each rank's slice of it; absent: one buffer"));
  return keys;
}

const Keys<Offers>& offered_keys() {
  using O = Offers;
  static const auto keys = key::rows<O>(
      key::whole<O>("max_zero", &O::max_zero, {0, 3}, "highest ZeRO stage the framework offers"),
      key::whole<O>("max_zero_in_pipeline", &O::max_zero_in_pipeline, {0, 3},
                    "highest ZeRO stage that it offers with several pipeline stages; 3"),
      key::flag<O>("data_parallel_only", &O::data_parallel_only,
                   "PyTorch's DDP or FSDP alone: no tensor, pipeline, context or expert "
                   "parallelism, and ZeRO 0, 2 or 3"),
      key::flag<O>("zero_one", &O::zero_one,
                   "plan may choose ZeRO 1, which FSDP is without: it shards gradients too; true"),
      key::flag<O>("pipeline", &O::pipeline, "offers pipeline parallelism; true"),
      key::flag<O>("sequence_parallel", &O::sequence_parallel, "offers it"),
      key::flag<O>("selective_recompute", &O::selective_recompute, "offers it"),
      key::flag<O>("partial_recompute", &O::partial_recompute,
                   "offers to recompute some of a stage's layers"),
      key::flag<O>("recompute_modules", &O::recompute_modules, "offers recomputation by modules"),
      key::flag<O>("interleaved", &O::interleaved, "offers virtual stages"),
      key::flag<O>("context_parallel", &O::context_parallel, "offers it"),
      key::flag<O>("zero_bubble", &O::zero_bubble, "offers schedules with split backward"),
      key::flag<O>("dualpipe", &O::dualpipe, "offers DualPipe and DualPipeV"),
      key::flag<O>("uneven_stages", &O::uneven_stages,
                   "offers any contiguous partition of the layers into stages"),
      key::flag<O>("stage_lists", &O::stage_lists, "offers a list of each stage's layers"),
      key::flag<O>("micro_batch_groups", &O::micro_batch_groups,
                   "interleaved: offers groups of more micro-batches than pipeline ranks"),
      key::flag<O>("shared_overlap", &O::shared_overlap,
                   "offers to compute shared experts during the exchange, whatever the dispatcher"),
      key::flag<O>("stage_sizes", &O::stage_sizes,
                   "offers stages with tensor and data parallel sizes of their own"),
      key::flag<O>("copied_scan_groups", &O::copied_scan_groups,
                   "tensor ranks that share a scan's group each hold its B and C"),
      key::flag<O>("hybrid_sharding", &O::hybrid_sharding,
                   "offers groups of ranks that each hold all of ZeRO's shards (HSDP, MiCS)"),
      key::flag<O>("outer_optimizer_shards", &O::outer_optimizer_shards,
                   "... which share the optimizer's states (Megatron-FSDP's HFSDP)"),
      key::flag<O>("zero_plus_plus", &O::zero_plus_plus, "offers ZeRO++"),
      key::flag<O>("packing", &O::packing,
                   "several samples in a sequence, each attending to itself alone"),
      key::flag<O>("batch_by_pipeline", &O::batch_by_pipeline,
                   "refuses a global batch that is no multiple of the pipeline parallel size"));
  return keys;
}

const Keys<Defaults>& layout_keys() {
  using D = Defaults;
  static const auto keys =
      key::rows<D>(key::flag<D>("rest_on_last_stage", &D::rest_on_last_stage,
                                "layers that do not divide: the last stage has the rest"),
                   key::flag<D>("layout_by_cost", &D::layout_by_cost,
                                "stages are cut by cost when a plan says no stage_layers"));
  return keys;
}

// Maps of their own.

const Keys<Defaults>& default_keys() {
  using D = Defaults;
  static const auto keys = key::rows<D>(
      key::required_source<D>(),
      key::whole<D>("zero", &D::zero, {0, 3}, "ZeRO stage of a plan that says none"),
      key::flag<D>("sequence_parallel", &D::sequence_parallel, "the same, with tp > 1"),
      key::whole<D>("micro_batches_per_rank", &D::micro_batches, {1, 1024},
                    "micro-batches per pipeline rank; absent: the search chooses"),
      key::whole<D>("stages_per_rank", &D::stages, {1, 128},
                    "virtual stages per rank, when interleaved; absent: the search chooses"),
      key::flag<D>("interleaved", &D::interleaved,
                   "its recipes interleave whenever the layers divide"),
      key::flag<D>("shards_in_node", &D::shards_in_node,
                   "ZeRO shards over the ranks of a node, where a plan has no dp_replicate"));
  return keys;
}

const Keys<Memory>& memory_keys() {
  using M = Memory;
  static const auto keys =
      key::rows<M>(key::number<M>("context_bytes", &M::context, 0, 1e12,
                                  "CUDA and NCCL contexts, outside the allocator"),
                   key::whole<M>("workspaces", &M::workspaces, {0, 64},
                                 "of context_bytes, workspaces of cuBLAS that the allocator "
                                 "counts: one a thread and library"),
                   key::whole<M>("expert_workspaces", &M::expert_workspaces, {0, 64},
                                 "the same of products in groups"),
                   key::number<M>("fragmentation", &M::fragmentation, 0, 1,
                                  "the allocator's reserve as a fraction of what is allocated"),
                   key::flag<M>("expandable_segments", &M::expandable_segments,
                                "the allocator's segments grow (PYTORCH_ALLOC_CONF)"),
                   key::word<M>("reported", &M::reported, reported_memory_names,
                                "the peak that the framework's log reports"),
                   key::source<M>());
  return keys;
}

const Keys<Host>& launch_keys() {
  using H = Host;
  static const auto keys = key::rows<H>(
      key::required_source<H>(),
      key::number<H>("kernel_s", &H::kernel_launch, 0, 10,
                     "host time per kernel, where the framework adds to the bare launch"),
      key::number<H>("recomputed_kernel_s", &H::recomputed, 0, 1,
                     "host time added to each launch of a recomputation: hooks of the checkpoint"),
      key::number<H>(
          "collective_s", &H::collective_wait, 0, 10,
          "added to each exposed tensor-parallel collective and pipeline transfer: ranks "
          "do not arrive at the same time"),
      key::number<H>("micro_batch_s", &H::micro_batch, 0, 10,
                     "host time per micro-batch and (virtual) stage"),
      key::number<H>("iteration_s", &H::iteration, 0, 10,
                     "host time per iteration: loss scale, norms and counters read back"),
      key::number<H>("parameter_s", &H::parameter, 0, 1,
                     "host time per parameter tensor of clipping gradients and of the optimizer, "
                     "hidden where the host is ahead of the device"),
      key::flag<H>("counts_calls", &H::counts_calls,
                   "the host's calls in a layer are counted as Megatron-LM with Transformer Engine "
                   "makes them, each as long as the device's launch.call_s"),
      key::number<H>("tensor_collective_s", &H::tensor_collective, 0, 10,
                     "host time of a tensor-parallel collective, beyond its launch"),
      key::number<H>("tensor_rank_s", &H::tensor_rank, 0, 10,
                     "what each tensor rank adds to it in a pipeline over several nodes"));
  return keys;
}

// The names of files in configs/kernels; who knows the folders reads them.
const Keys<Kernels>& kernel_set_names() {
  using K = Kernels;
  static const auto keys =
      key::rows<K>(key::text<K>(
                       "eager", [](K& k) -> std::string& { return k.eager.name; },
                       "the kernels between the products, a file in configs/kernels"),
                   key::text<K>(
                       "compiled", [](K& k) -> std::string& { return k.compiled.name; },
                       "the same with overlap.compile"),
                   key::text<K>(
                       "adapters", [](K& k) -> std::string& { return k.adapters.name; },
                       "the same where adapters alone are trained; absent: as eager"));
  return keys;
}

// A map of a source and one factor.
template <class Part>
Keys<Part> factor_keys(double Part::*field, std::string_view help) {
  return key::rows<Part>(key::required_source<Part>(),
                         key::number<Part>("factor", field, 0.5, 10, help));
}

const Keys<Kernels>& attention_keys() {
  static const auto keys = factor_keys(
      &Kernels::attention_factor, "time of its fused attention kernel relative to the best one");
  return keys;
}
const Keys<Kernels>& elementwise_keys() {
  static const auto keys = factor_keys(
      &Kernels::elementwise_factor, "time of memory-bound kernels relative to the device's best");
  return keys;
}
const Keys<Zero>& sharding_keys() {
  static const auto keys = factor_keys(
      &Zero::slowdown, "slowdown of computation that overlaps with a layer's ZeRO-3 collectives");
  return keys;
}

const Keys<Experts>& expert_cost_keys() {
  using E = Experts;
  static const auto keys = key::rows<E>(
      key::required_source<E>(),
      key::number<E>(
          "start_s", &E::start, 0, 1,
          "time that every local expert adds to a grouped product, with 16-bit operands"),
      key::number<E>("narrow_start_s", &E::start_narrow, 0, 1, "the same with narrower operands"),
      key::number<E>("fused_start_s", &E::start_fused, 0, 1,
                     "as start_s, where one kernel does all experts"),
      key::number<E>(
          "dropless_host_s", &E::dropless_host, 0, 1,
          "host time per local expert of a forward whose experts take as many rows as are "
          "routed to them, with narrow operands"),
      key::flag<E>("unfused_bias", &E::unfused_bias,
                   "kernels one after another add biases of experts, and clamp their gated "
                   "activation: experts with biases and a gate are taken for gpt-oss's"),
      key::number<E>("permute_factor", &E::permute_factor, 0.5, 10,
                     "as elementwise.factor, of kernels that sort rows by expert; absent: equal"),
      key::number<E>("exchange_efficiency", &E::exchange_efficiency, 0, 1,
                     "of deepep and hybridep, relative to collectives' on a tier"),
      key::number<E>("eager_overlap", &E::eager_overlap, 0, 1,
                     "part of an overlapped exchange that is hidden when no graph replays"));
  return keys;
}

// What is written of experts in one map belongs to three parts.
const Keys<S>& expert_keys() {
  static const Keys<S> keys = joined<S>(
      key::of_part<S>(&S::experts, expert_cost_keys()),
      key::rows<S>(
          key::word<S>(
              "flex_dispatcher", [](S& s) -> FlexDispatcher& { return s.offers.flex_dispatcher; },
              flex_dispatcher_names, "offers deepep alone, or (true) deepep and hybridep"),
          key::flag<S>(
              "overlap", [](S& s) -> bool& { return s.offers.expert_overlap; },
              "offers the exchange during another micro-batch's computation"),
          key::word<S>(
              "dispatcher", [](S& s) -> Dispatcher& { return s.defaults.experts.dispatcher; },
              dispatcher_names, "how tokens reach experts when a plan says nothing"),
          key::whole<S>(
              "dispatcher_multiprocessors",
              [](S& s) -> int& { return s.defaults.experts.multiprocessors; }, {0, 1024},
              "multiprocessors that the dispatcher's kernels take from others")));
  return keys;
}

// What is written of adapters in one map belongs to three parts.
const Keys<S>& adapter_keys() {
  static const auto keys = key::rows<S>(
      key::required_source<S>(),
      key::flag<S>(
          "lora", [](S& s) -> bool& { return s.offers.adapters; },
          "offers low-rank adapters beside a frozen base"),
      key::flag<S>(
          "experts", [](S& s) -> bool& { return s.offers.expert_adapters; },
          "experts are modules: each has adapters of its own, and 4 bits with the base"),
      key::flag<S>(
          "joint", [](S& s) -> bool& { return s.offers.joint_adapters; },
          "queries, keys and values have one adapter, gate and up another, if all are targets"),
      key::flag<S>(
          "all_to_all", [](S& s) -> bool& { return s.offers.exchanged_adapters; },
          "with sequence parallelism what a row-parallel product's adapter adds may be sent to the "
          "ranks of its tokens alone, and is unless the run states otherwise"),
      key::flag<S>(
          "nf4", [](S& s) -> bool& { return s.offers.nf4; }, "offers a base of 4 bits (QLoRA)"),
      key::flag<S>(
          "plain", [](S& s) -> bool& { return s.memory.plain_adapters; },
          "adapters are trained as they are, without a copy in the optimizer, in fp32 unless "
          "adapter_precision says otherwise"),
      key::flag<S>(
          "scales_output", [](S& s) -> bool& { return s.kernels.scales_adapter_output; },
          "an adapter's result is scaled by a kernel of its own"));
  return keys;
}

// What is written of host memory in one map belongs to two parts.
const Keys<S>& offload_rows() {
  static const auto keys =
      key::rows<S>(key::required_source<S>(),
                   key::flag<S>(
                       "optimizer", [](S& s) -> bool& { return s.offers.optimizer_offload; },
                       "offers optimizer states in host memory, updated by its processors"),
                   key::flag<S>(
                       "parameters", [](S& s) -> bool& { return s.offers.parameter_offload; },
                       "offers sharded parameters there too"),
                   key::flag<S>(
                       "nvme", [](S& s) -> bool& { return s.offers.drive_offload; },
                       "offers either of them on NVMe drives"),
                   key::flag<S>(
                       "activations", [](S& s) -> bool& { return s.offers.layer_offload; },
                       "offers activations of chosen layers there"),
                   key::flag<S>(
                       "modules", [](S& s) -> bool& { return s.offers.module_offload; },
                       "offers activations of chosen modules there"),
                   key::flag<S>(
                       "gradients", [](S& s) -> bool& { return s.memory.gradient_offload; },
                       "with ZeRO 2 and 3 gradients go there as they are reduced"));
  return keys;
}

const Keys<S>& earlier_rows() {
  static const auto keys = key::rows<S>(
      key::required(key::text<S>(
          "stack", [](S& s) -> std::string& { return s.earlier.stack; }, "a file of stacks")),
      key::required(key::whole<S>(
          "until", [](S& s) -> int& { return s.earlier.until; }, {2018, 2100},
          "the last year of its runs")));
  return keys;
}

const Keys<S>& stack_rows() {
  static const Keys<S> keys = joined<S>(
      key::rows<S>(key::text<S>("title", &S::title, "for people"),
                   key::text<S>("framework", &S::framework, "for people and for groups of errors"),
                   key::text<S>("lineage", &S::lineage,
                                "stacks of one code, as megatron: where many of their runs are "
                                "measured, intervals rest on those alone"),
                   key::remark<S>("version", "for people"),
                   key::map<S>("earlier", std::identity{}, earlier_rows()),
                   key::note<S>("names", "what people call it: --framework finds it by them")),
      key::of_part<S>(&S::kernels, kernel_keys()), key::of_part<S>(&S::memory, kept_keys()),
      key::of_part<S>(&S::collectives, collective_keys()), key::of_part<S>(&S::zero, zero_keys()),
      key::rows<S>(key::whole<S>(
          "expert_group", [](S& s) -> int& { return s.experts.group; }, {0, 1 << 20},
          "tokens dispatched to experts together by a product with a one-hot mask "
          "(GShard); 0: by copying rows")),
      key::of_part<S>(&S::offers, offered_keys()), key::of_part<S>(&S::defaults, layout_keys()),
      key::rows<S>(key::map<S>("defaults", &S::defaults, default_keys()),
                   key::map<S>("launch", &S::host, launch_keys()),
                   key::map<S>("fused_attention", &S::kernels, attention_keys()),
                   key::map<S>("kernels", &S::kernels, kernel_set_names()),
                   key::map<S>("elementwise", &S::kernels, elementwise_keys()),
                   key::map<S>("beside_sharding", &S::zero, sharding_keys()),
                   key::map<S>("experts", std::identity{}, expert_keys()),
                   key::map<S>("adapters", std::identity{}, adapter_keys()),
                   key::map<S>("offload", std::identity{}, offload_rows()),
                   key::map<S>("overlap", &S::overlap, overlap_keys()),
                   key::map<S>("memory", &S::memory, memory_keys()), key::source<S>("sources"),
                   key::source<S>()));
  return keys;
}

}  // namespace

StackSpec read_stack(const Value& map, const std::string& name) {
  StackSpec stack;
  stack.name = stack.title = name;
  stack.experts.permute_factor = 0;  // below what can be written
  read_map(map, "stack " + quote(name), stack_rows(), stack);
  if (stack.experts.permute_factor == 0)
    stack.experts.permute_factor = stack.kernels.elementwise_factor;
  return stack;
}

std::vector<KeyText> stack_keys() { return described(stack_rows(), "stack."); }

}  // namespace costmodel
