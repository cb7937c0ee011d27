#include "costmodel/plan/stack_reader.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "costmodel/base/escape.hpp"
#include "costmodel/config/map_reader.hpp"

namespace costmodel {

namespace {

// false, true (a graph a layer), or the scopes that graphs replay.
void read_graph_scopes(const Value& value, Overlap& overlap) {
  overlap.cuda_graph = overlap.graph_attention = overlap.graph_mlp = overlap.graph_router = false;
  if (value.is_scalar()) {
    overlap.cuda_graph = read_boolean(value, "cuda_graph");
    return;
  }
  static constexpr std::array<std::string_view, 7> scopes{
      "full_iteration", "layer", "attn", "mlp", "moe_router", "moe_preprocess", "mamba"};
  for (const Value& item : value.items) {
    const auto at = std::find(scopes.begin(), scopes.end(), item.text);
    if (at == scopes.end()) {
      throw ConfigError(item.mark, fmt::format("cuda_graph: {} is not a scope", quote(item.text)),
                        known_names(item.text, {scopes.begin(), scopes.end()}));
    }
    if (at < scopes.begin() + 2) overlap.cuda_graph = true;
    if (*at == "attn") overlap.graph_attention = true;
    if (*at == "mlp" || *at == "mamba") overlap.graph_mlp = true;
    if (*at == "moe_router" || *at == "moe_preprocess") overlap.graph_router = true;
  }
}

}  // namespace

Overlap read_overlap(const Value& map, Overlap base) {
  MapReader reader(map, "overlap");
  if (const auto both = reader.boolean("dp_overlap"))
    base.overlap_grad_reduce = base.overlap_param_gather = *both;
  const auto flag = [&reader](std::string_view key, bool& field) {
    field = reader.boolean(key).value_or(field);
  };
  flag("overlap_grad_reduce", base.overlap_grad_reduce);
  flag("overlap_param_gather", base.overlap_param_gather);
  flag("tp_comm_overlap", base.tp_comm_overlap);
  flag("pp_overlap", base.pp_overlap);
  flag("async_tp", base.async_tp);
  flag("compile", base.compile);
  if (const Value* graph = reader.optional("cuda_graph")) read_graph_scopes(*graph, base);
  reader.finish();
  return base;
}

namespace {

void read_memory(const Value* map, StackSpec& stack) {
  if (map == nullptr) return;
  MapReader reader(*map, "memory");
  stack.context = Bytes(reader.number("context_bytes", Dimension::size, 0, 1e12).value_or(0));
  stack.fragmentation = reader.number("fragmentation", Dimension::count, 0, 1).value_or(0);
  if (const auto kind = reader.one_of("reported", reported_memory_names))
    stack.reported = static_cast<ReportedMemory>(*kind);
  reader.optional("source");
  reader.finish();
}

void read_flags(MapReader& reader, StackSpec& stack) {
  const auto flag = [&reader](std::string_view key, bool& field) {
    field = reader.boolean(key).value_or(field);
  };
  flag("fused_softmax", stack.fused_softmax);
  stack.fused_softmax_batches =
      static_cast<int>(reader.integer("fused_softmax_batches", {1, 1024}).value_or(1));
  flag("triangular_softmax", stack.triangular_softmax);
  flag("fused_bias_activation", stack.fused_bias_activation);
  flag("fused_bias_dropout_add", stack.fused_bias_dropout_add);
  flag("fused_cross_entropy", stack.fused_cross_entropy);
  flag("fused_accumulation", stack.fused_accumulation);
  stack.expert_group = static_cast<int>(reader.integer("expert_group", {0, 1 << 20}).value_or(0));
  flag("fp32_logits", stack.fp32_logits);
  flag("causal_skip", stack.causal_skip);
  flag("narrow_saved_inputs", stack.narrow_saved_inputs);
  flag("bf16_optimizer", stack.bf16_optimizer);
  flag("master_weights", stack.master_weights);
  flag("fp32_shards", stack.fp32_shards);
  flag("scatter_gather", stack.scatter_gather);
  flag("backward_tp_overlap", stack.backward_tp_overlap);
  flag("embedding_all_reduce", stack.embedding_all_reduce);
  flag("zero_prefetch", stack.zero_prefetch);
  flag("zero_by_module", stack.zero_by_module);
  flag("activation_offload", stack.activation_offload);
  flag("whole_in_pipeline", stack.whole_in_pipeline);
  flag("whole_gradients", stack.whole_gradients);
  flag("zero_one_port", stack.zero_one_port);
  flag("one_collective_queue", stack.one_collective_queue);
  flag("sequence_parallel", stack.sequence_parallel);
  flag("selective_recompute", stack.selective_recompute);
  flag("selective_half", stack.selective_half);
  flag("recompute_modules", stack.recompute_modules);
  flag("interleaved", stack.interleaved);
  flag("context_parallel", stack.context_parallel);
  flag("zero_bubble", stack.zero_bubble);
  flag("post_validation", stack.post_validation);
  flag("uneven_stages", stack.uneven_stages);
  flag("rest_on_last_stage", stack.rest_on_last_stage);
  flag("layout_by_cost", stack.layout_by_cost);
}

void read_defaults(const Value* map, StackSpec& stack) {
  if (map == nullptr) return;
  MapReader reader(*map, "defaults");
  reader.required("source");
  stack.default_zero = static_cast<int>(reader.integer("zero", {0, 3}).value_or(0));
  stack.default_sequence_parallel = reader.boolean("sequence_parallel").value_or(false);
  stack.default_micro_batches =
      static_cast<int>(reader.integer("micro_batches_per_rank", {1, 1024}).value_or(0));
  stack.default_stages = static_cast<int>(reader.integer("stages_per_rank", {1, 128}).value_or(0));
  stack.default_interleaved = reader.boolean("interleaved").value_or(false);
  reader.finish();
}

void read_launch(const Value* map, StackSpec& stack) {
  if (map == nullptr) return;
  MapReader reader(*map, "launch");
  reader.required("source");
  const auto seconds = [&reader](std::string_view key) {
    return Seconds(reader.number(key, Dimension::time, 0, 10).value_or(0));
  };
  stack.kernel_launch = seconds("kernel_s");
  stack.collective_wait = seconds("collective_s");
  stack.micro_batch_host = seconds("micro_batch_s");
  stack.iteration_host = seconds("iteration_s");
  stack.tensor_collective_host = seconds("tensor_collective_s");
  stack.tensor_rank_host = seconds("tensor_rank_s");
  reader.finish();
}

void read_experts(const Value* map, StackSpec& stack) {
  if (map == nullptr) return;
  MapReader reader(*map, "experts");
  reader.required("source");
  if (const auto at = reader.one_of("dispatcher", dispatcher_names))
    stack.experts.dispatcher = static_cast<Dispatcher>(*at);
  stack.experts.multiprocessors =
      static_cast<int>(reader.integer("dispatcher_multiprocessors", {0, 1024}).value_or(0));
  const auto seconds = [&reader](std::string_view key, Seconds usual) {
    return Seconds(reader.number(key, Dimension::time, 0, 1).value_or(usual.value));
  };
  stack.expert_start = seconds("start_s", stack.expert_start);
  stack.expert_start_narrow = seconds("narrow_start_s", stack.expert_start_narrow);
  stack.flex_dispatcher = reader.boolean("flex_dispatcher").value_or(false);
  stack.expert_overlap = reader.boolean("overlap").value_or(false);
  const auto share = [&reader](std::string_view key, double usual) {
    return reader.number(key, Dimension::count, 0, 1).value_or(usual);
  };
  stack.permute_factor =
      reader.number("permute_factor", Dimension::count, 0.5, 10).value_or(stack.elementwise_factor);
  stack.exchange_efficiency = share("exchange_efficiency", stack.exchange_efficiency);
  stack.eager_expert_overlap = share("eager_overlap", stack.eager_expert_overlap);
  stack.dropless_host = seconds("dropless_host_s", stack.dropless_host);
  stack.expert_start_fused = seconds("fused_start_s", stack.expert_start_fused);
  reader.finish();
}

// Reads the time of a group of kernels relative to the best.
void read_factor(const Value* map, const std::string& group, double& factor) {
  if (map == nullptr) return;
  MapReader reader(*map, group);
  reader.required("source");
  factor = reader.number("factor", Dimension::count, 0.5, 10).value_or(factor);
  reader.finish();
}

}  // namespace

StackSpec read_stack(const Value& map, const std::string& name) {
  MapReader reader(map, "stack " + quote(name));
  StackSpec stack;
  stack.name = name;
  stack.title = reader.text("title").value_or(name);
  stack.framework = reader.text("framework").value_or("");
  stack.version = reader.text("version").value_or("");
  if (const auto kernel = reader.one_of("attention", attention_kernel_names)) {
    stack.attention = static_cast<AttentionKernel>(*kernel);
  }
  if (const auto precision = reader.one_of("gradient_precision", precision_names)) {
    stack.gradient_precision = static_cast<Precision>(*precision);
  }
  read_flags(reader, stack);
  read_defaults(reader.optional("defaults"), stack);
  read_launch(reader.optional("launch"), stack);
  read_factor(reader.optional("fused_attention"), "fused_attention", stack.attention_factor);
  read_factor(reader.optional("beside_sharding"), "beside_sharding", stack.zero_slowdown);
  read_factor(reader.optional("elementwise"), "elementwise", stack.elementwise_factor);
  stack.permute_factor = stack.elementwise_factor;
  read_experts(reader.optional("experts"), stack);
  stack.gradient_bucket =
      Bytes(reader.number("gradient_bucket_bytes", Dimension::size, 1e3, 1e12).value_or(0));
  stack.max_zero = static_cast<int>(reader.integer("max_zero", {0, 3}).value_or(3));
  if (const Value* overlap = reader.optional("overlap"))
    stack.overlap = read_overlap(*overlap, stack.overlap);
  read_memory(reader.optional("memory"), stack);
  reader.optional("sources");
  reader.optional("source");
  reader.finish();
  return stack;
}

}  // namespace costmodel
