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
  overlap.cuda_graph = overlap.graph_attention = overlap.graph_mlp = overlap.graph_router = false;
  if (value.is_scalar()) {
    overlap.cuda_graph = read_boolean(value, "cuda_graph");
    return;
  }
  for (const Value& item : value.items) {
    const auto at = std::find(graph_scopes.begin(), graph_scopes.end(), item.text);
    if (at == graph_scopes.end()) {
      throw ConfigError(item.mark, fmt::format("cuda_graph: {} is not a scope", quote(item.text)),
                        known_names(item.text, {graph_scopes.begin(), graph_scopes.end()}));
    }
    if (at < graph_scopes.begin() + 2) overlap.cuda_graph = true;
    if (*at == "attn") overlap.graph_attention = true;
    if (*at == "mlp" || *at == "mamba") overlap.graph_mlp = true;
    if (*at == "moe_router" || *at == "moe_preprocess") overlap.graph_router = true;
  }
}

const Keys<Overlap>& overlap_keys() {
  using O = Overlap;
  static const Keys<O> keys{
      key::special<O>("dp_overlap", "true, false", "overlap_grad_reduce and overlap_param_gather",
                      [](MapReader& reader, O& o) {
                        if (const auto both = reader.boolean("dp_overlap"))
                          o.overlap_grad_reduce = o.overlap_param_gather = *both;
                      }),
      key::flag<O>("overlap_grad_reduce", &O::overlap_grad_reduce,
                   "data-parallel gradients are reduced beside the last micro-batch's backward"),
      key::flag<O>("overlap_param_gather", &O::overlap_param_gather,
                   "sharded parameters are gathered beside the first micro-batch's forward"),
      key::flag<O>("tp_comm_overlap", &O::tp_comm_overlap,
                   "tensor-parallel collectives are pipelined with the product they feed"),
      key::flag<O>("pp_overlap", &O::pp_overlap, "pipeline transfers overlap with computation"),
      key::flag<O>("async_tp", &O::async_tp, "torchtitan's micro-pipelined tensor parallelism"),
      key::flag<O>("compile", &O::compile,
                   "torch.compile or XLA: a chain of element-wise operators is one kernel"),
      key::special<O>("cuda_graph", "true, false, or a list of " + words_text(graph_scopes),
                      "kernels are replayed from CUDA graphs: of a layer, or of these scopes",
                      [](MapReader& reader, O& o) {
                        if (const Value* graph = reader.optional("cuda_graph"))
                          read_graph_scopes(*graph, o);
                      })};
  return keys;
}

}  // namespace

Overlap read_overlap(const Value& map, Overlap base) {
  MapReader reader(map, "overlap");
  read_keys(reader, overlap_keys(), base);
  reader.finish();
  return base;
}

namespace {

using S = StackSpec;

const Keys<S>& memory_keys() {
  static const Keys<S> keys{
      key::number<S>("context_bytes", &S::context, 0, 1e12,
                     "CUDA and NCCL contexts, outside the allocator"),
      key::number<S>("fragmentation", &S::fragmentation, 0, 1,
                     "the allocator's reserve as a fraction of what is allocated"),
      key::word<S>("reported", &S::reported, reported_memory_names,
                   "the peak that the framework's log reports"),
      key::source<S>()};
  return keys;
}

const Keys<S>& default_keys() {
  static const Keys<S> keys{
      key::source<S>("source", true),
      key::whole<S>("zero", &S::default_zero, {0, 3}, "ZeRO stage of a plan that says none"),
      key::flag<S>("sequence_parallel", &S::default_sequence_parallel, "the same, with tp > 1"),
      key::whole<S>("micro_batches_per_rank", &S::default_micro_batches, {1, 1024},
                    "micro-batches per pipeline rank; absent: the search chooses"),
      key::whole<S>("stages_per_rank", &S::default_stages, {1, 128},
                    "virtual stages per rank, when interleaved; absent: the search chooses"),
      key::flag<S>("interleaved", &S::default_interleaved,
                   "its recipes interleave whenever the layers divide")};
  return keys;
}

const Keys<S>& launch_keys() {
  static const Keys<S> keys{
      key::source<S>("source", true),
      key::number<S>("kernel_s", &S::kernel_launch, 0, 10,
                     "host time per kernel, where the framework adds to the bare launch"),
      key::number<S>(
          "collective_s", &S::collective_wait, 0, 10,
          "added to each exposed tensor-parallel collective and pipeline transfer: ranks "
          "do not arrive at the same time"),
      key::number<S>("micro_batch_s", &S::micro_batch_host, 0, 10,
                     "host time per micro-batch and (virtual) stage"),
      key::number<S>("iteration_s", &S::iteration_host, 0, 10,
                     "host time per iteration: loss scale, norms and counters read back"),
      key::number<S>("tensor_collective_s", &S::tensor_collective_host, 0, 10,
                     "host time of a tensor-parallel collective, beyond its launch"),
      key::number<S>("tensor_rank_s", &S::tensor_rank_host, 0, 10,
                     "what each tensor rank adds to it in a pipeline over several nodes")};
  return keys;
}

const Keys<S>& attention_keys() {
  static const Keys<S> keys{
      key::source<S>("source", true),
      key::number<S>("factor", &S::attention_factor, 0.5, 10,
                     "time of its fused attention kernel relative to the best one")};
  return keys;
}
const Keys<S>& sharding_keys() {
  static const Keys<S> keys{
      key::source<S>("source", true),
      key::number<S>("factor", &S::zero_slowdown, 0.5, 10,
                     "slowdown of computation that overlaps with a layer's ZeRO-3 collectives")};
  return keys;
}
const Keys<S>& elementwise_keys() {
  static const Keys<S> keys{
      key::source<S>("source", true),
      key::number<S>("factor", &S::elementwise_factor, 0.5, 10,
                     "time of memory-bound kernels relative to the device's best")};
  return keys;
}

const Keys<S>& expert_keys() {
  static const Keys<S> keys{
      key::source<S>("source", true),
      key::word<S>(
          "dispatcher", [](S& s) -> Dispatcher& { return s.experts.dispatcher; }, dispatcher_names,
          "how tokens reach experts when a plan says nothing"),
      key::whole<S>(
          "dispatcher_multiprocessors", [](S& s) -> int& { return s.experts.multiprocessors; },
          {0, 1024}, "multiprocessors that the dispatcher's kernels take from others"),
      key::number<S>(
          "start_s", &S::expert_start, 0, 1,
          "time that every local expert adds to a grouped product, with 16-bit operands"),
      key::number<S>("narrow_start_s", &S::expert_start_narrow, 0, 1,
                     "the same with narrower operands"),
      key::flag<S>("flex_dispatcher", &S::flex_dispatcher, "offers deepep and hybridep"),
      key::flag<S>("overlap", &S::expert_overlap,
                   "offers the exchange beside another micro-batch's computation"),
      key::number<S>("permute_factor", &S::permute_factor, 0.5, 10,
                     "as elementwise.factor, of kernels that sort rows by expert; absent: equal"),
      key::number<S>("exchange_efficiency", &S::exchange_efficiency, 0, 1,
                     "of deepep and hybridep, relative to collectives' on a tier"),
      key::number<S>("eager_overlap", &S::eager_expert_overlap, 0, 1,
                     "part of an overlapped exchange that is hidden when no graph replays"),
      key::number<S>(
          "dropless_host_s", &S::dropless_host, 0, 1,
          "host time per local expert of a forward whose experts take as many rows as are "
          "routed to them, with narrow operands"),
      key::number<S>("fused_start_s", &S::expert_start_fused, 0, 1,
                     "as start_s, where one kernel does all experts")};
  return keys;
}

S& itself(S& stack) { return stack; }

// What it is, and its kernels.
Keys<S> kernel_keys() {
  return {
      key::text<S>("title", &S::title, "for people"),
      key::text<S>("framework", &S::framework, "for people and for groups of errors"),
      key::text<S>("version", &S::version, "for people"),
      key::word<S>("attention", &S::attention, attention_kernel_names,
                   "flash: the device's best fused kernel; flash2: FlashAttention 2"),
      key::word<S>("gradient_precision", &S::gradient_precision, precision_names,
                   "of the accumulation buffer"),
      key::flag<S>("fused_softmax", &S::fused_softmax,
                   "scale, mask and softmax are one kernel (unfused attention)"),
      key::whole<S>("fused_softmax_batches", &S::fused_softmax_batches, {1, 1024},
                    "... only if sequences x heads on a rank is a multiple of this"),
      key::flag<S>("triangular_softmax", &S::triangular_softmax,
                   "... and it does not read masked scores"),
      key::flag<S>("fused_bias_activation", &S::fused_bias_activation,
                   "bias and activation are one kernel"),
      key::flag<S>("fused_bias_dropout_add", &S::fused_bias_dropout_add,
                   "bias, dropout and residual are one kernel"),
      key::flag<S>("fused_cross_entropy", &S::fused_cross_entropy,
                   "no fp32 copy of the logits is kept"),
      key::flag<S>("fused_accumulation", &S::fused_accumulation,
                   "products add 16-bit weight gradients into their buffer"),
      key::whole<S>("expert_group", &S::expert_group, {0, 1 << 20},
                    "tokens dispatched to experts together by a product with a one-hot mask "
                    "(GShard); 0: by copying rows"),
      key::flag<S>("fp32_logits", &S::fp32_logits,
                   "the fp32 copy of the logits has a gradient of its own"),
      key::flag<S>("causal_skip", &S::causal_skip, "the attention kernel skips the masked half")};
}

// What it keeps, and how it shards and sends.
Keys<S> state_keys() {
  return {
      key::flag<S>("narrow_saved_inputs", &S::narrow_saved_inputs,
                   "fp8 products save their inputs in fp8"),
      key::flag<S>("bf16_optimizer", &S::bf16_optimizer,
                   "bf16 runs shard as ZeRO-1 and accumulate fp32 gradients beside the bf16 ones"),
      key::flag<S>("master_weights", &S::master_weights,
                   "the optimizer keeps fp32 copies of 16-bit parameters"),
      key::flag<S>("fp32_shards", &S::fp32_shards,
                   "ZeRO-3 shards the fp32 parameters; 16-bit ones exist when gathered"),
      key::flag<S>("scatter_gather", &S::scatter_gather,
                   "pipeline transfers are split over the tensor ranks"),
      key::flag<S>("backward_tp_overlap", &S::backward_tp_overlap,
                   "input-gradient collectives overlap with the weight-gradient product"),
      key::flag<S>("embedding_all_reduce", &S::embedding_all_reduce,
                   "first and last stage all-reduce the gradient of tied embeddings"),
      key::flag<S>("zero_prefetch", &S::zero_prefetch,
                   "ZeRO-3 gathers the next layer while this one computes"),
      key::flag<S>("zero_by_module", &S::zero_by_module,
                   "ZeRO-3 gathers and scatters per product instead of per layer"),
      key::flag<S>("activation_offload", &S::activation_offload,
                   "its ZeRO-3 recipes offload as many layers' activations as needed to fit"),
      key::flag<S>("whole_in_pipeline", &S::whole_in_pipeline,
                   "with pp > 1 ZeRO-3 keeps parameters and gradients whole (FSDP2)"),
      key::flag<S>("whole_gradients", &S::whole_gradients,
                   "ZeRO-2 and 3 reduce-scatter only after all gradients are complete"),
      key::flag<S>("zero_one_port", &S::zero_one_port,
                   "ZeRO-3 collectives leave a node through one of its ports"),
      key::flag<S>("one_collective_queue", &S::one_collective_queue,
                   "with tp > 1 gradient reduction waits for tensor-parallel collectives")};
}

// What it offers, and how it cuts stages.
Keys<S> offered_keys() {
  return {
      key::flag<S>("sequence_parallel", &S::sequence_parallel, "offers it"),
      key::flag<S>("selective_recompute", &S::selective_recompute, "offers it"),
      key::flag<S>("selective_half", &S::selective_half,
                   "`selective` keeps every second product or layer (torchtitan)"),
      key::flag<S>("recompute_modules", &S::recompute_modules, "offers recomputation by modules"),
      key::flag<S>("interleaved", &S::interleaved, "offers virtual stages"),
      key::flag<S>("context_parallel", &S::context_parallel, "offers it"),
      key::flag<S>("zero_bubble", &S::zero_bubble, "offers schedules with split backward"),
      key::flag<S>("post_validation", &S::post_validation,
                   "... whose optimizer steps without waiting for the global gradient norm"),
      key::flag<S>("uneven_stages", &S::uneven_stages,
                   "offers any contiguous partition of the layers into stages"),
      key::flag<S>("rest_on_last_stage", &S::rest_on_last_stage,
                   "layers that do not divide: the last stage has the rest"),
      key::flag<S>("layout_by_cost", &S::layout_by_cost,
                   "stages are cut by cost when a plan says no stage_layers")};
}

// Maps of their own, and figures.
Keys<S> further_keys() {
  return {
      key::map<S>("defaults", itself, default_keys()),
      key::map<S>("launch", itself, launch_keys()),
      key::map<S>("fused_attention", itself, attention_keys()),
      key::map<S>("beside_sharding", itself, sharding_keys()),
      key::map<S>("elementwise", itself, elementwise_keys()),
      key::map<S>("experts", itself, expert_keys()),
      key::number<S>("gradient_bucket_bytes", &S::gradient_bucket, 1e3, 1e12,
                     "gradients are reduced in messages of this size; absent: all at once"),
      key::whole<S>("max_zero", &S::max_zero, {0, 3}, "highest ZeRO stage the framework offers"),
      key::map<S>("overlap", &S::overlap, overlap_keys()),
      key::map<S>("memory", itself, memory_keys()),
      key::source<S>("sources"),
      key::source<S>()};
}

const Keys<S>& stack_rows() {
  static const Keys<S> keys = [] {
    Keys<S> all;
    for (const auto& part : {kernel_keys(), state_keys(), offered_keys(), further_keys()})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }();
  return keys;
}

}  // namespace

StackSpec read_stack(const Value& map, const std::string& name) {
  MapReader reader(map, "stack " + quote(name));
  StackSpec stack;
  stack.name = stack.title = name;
  stack.permute_factor = 0;  // below what can be written
  read_keys(reader, stack_rows(), stack);
  if (stack.permute_factor == 0) stack.permute_factor = stack.elementwise_factor;
  reader.finish();
  return stack;
}

std::vector<KeyText> stack_keys() { return described(stack_rows(), "stack."); }
std::vector<KeyText> overlap_keys_text() { return described(overlap_keys(), "training.overlap."); }

}  // namespace costmodel
