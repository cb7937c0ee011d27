#include "planner/traces/attribution.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include "planner/traces/kernel_names.hpp"
#include "planner/traces/operator_sizes.hpp"

namespace planner {

using costmodel::KernelKind;

namespace {

struct Word {
  TracedPart part;
  std::string_view word;
};

// Of PyTorch's operators, its autograd functions, and the annotations of its libraries; of a kernel
// that a compiler fused, of what it fused. The first row decides.
constexpr Word words[]{
    {TracedPart::shards, "FSDP::"},
    {TracedPart::shards, "fsdp::"},
    {TracedPart::shards, "DistributedDataParallel"},
    {TracedPart::shards, "chunk_cat"},
    {TracedPart::shards, "split_with_sizes_copy"},
    {TracedPart::optimizer, "Optimizer.step"},
    {TracedPart::optimizer, "Optimizer.zero_grad"},
    {TracedPart::optimizer, "_fused_adam"},
    {TracedPart::optimizer, "_foreach_"},
    {TracedPart::optimizer, "linalg_vector_norm"},
    {TracedPart::optimizer, "clip_grad"},
    {TracedPart::optimizer, "multi_tensor"},
    {TracedPart::attention, "flash_attention"},
    {TracedPart::attention, "efficient_attention"},
    {TracedPart::attention, "cudnn_attention"},
    {TracedPart::attention, "scaled_dot_product"},
    {TracedPart::attention, "flash_attn"},
    {TracedPart::attention, "FusedAttn"},
    {TracedPart::loss, "log_softmax"},
    {TracedPart::loss, "LogSoftmax"},
    {TracedPart::loss, "nll_loss"},
    {TracedPart::loss, "NllLoss"},
    {TracedPart::loss, "cross_entropy"},
    {TracedPart::loss, "CrossEntropy"},
    {TracedPart::embedding, "embedding"},
    {TracedPart::embedding, "Embedding"},
    {TracedPart::norms, "rms_norm"},
    {TracedPart::norms, "RMSNorm"},
    {TracedPart::norms, "RmsNorm"},
    {TracedPart::norms, "layer_norm"},
    {TracedPart::norms, "LayerNorm"},
    {TracedPart::norms, "rsqrt"},
    {TracedPart::norms, "Rsqrt"},
    {TracedPart::norms, "PowBackward"},
    {TracedPart::activation, "silu"},
    {TracedPart::activation, "Silu"},
    {TracedPart::activation, "gelu"},
    {TracedPart::activation, "Gelu"},
    {TracedPart::activation, "SwiGLU"},
    {TracedPart::routing, "topk"},
    {TracedPart::routing, "Topk"},
    {TracedPart::routing, "argsort"},
    {TracedPart::routing, "aten::sort"},
    {TracedPart::routing, "bincount"},
    {TracedPart::routing, "cumsum"},
    {TracedPart::routing, "histc"},
    {TracedPart::routing, "softmax"},
    {TracedPart::routing, "Softmax"},
    {TracedPart::routing, "aten::index"},
    {TracedPart::routing, "IndexBackward"},
    {TracedPart::routing, "IndexAdd"},
    {TracedPart::routing, "index_add"},
    {TracedPart::routing, "scatter"},
    {TracedPart::routing, "gather"},
    {TracedPart::rotary, "view_as_complex"},
    {TracedPart::rotary, "view_as_real"},
    {TracedPart::rotary, "ViewAsComplex"},
    {TracedPart::rotary, "ViewAsReal"},
    {TracedPart::rotary, "rotary"},
    {TracedPart::rotary, "aten::cat"},
    {TracedPart::rotary, "CatBackward"},
    {TracedPart::rotary, "aten::neg"},
    {TracedPart::rotary, "NegBackward"},
    {TracedPart::rotary, "SliceBackward"},
    {TracedPart::rotary, "complex"},
    {TracedPart::repeat_kv, "repeat_interleave"},
    {TracedPart::repeat_kv, "ExpandBackward"},
};

constexpr std::string_view product_words[]{
    "aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::_scaled_mm", "Addmm", "cublas"};

bool holds(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

TracedPart by_words(std::string_view text) {
  const auto* const row =
      std::ranges::find_if(words, [&](const Word& word) { return holds(text, word.word); });
  return row == std::end(words) ? TracedPart::unknown : row->part;
}

TracedPart by_kind(std::string_view kernel) {
  const auto kind = kind_of_kernel(kernel);
  if (!kind) return TracedPart::unknown;
  switch (*kind) {
    case KernelKind::products: return TracedPart::other_products;
    case KernelKind::attention_forward:
    case KernelKind::attention_backward: return TracedPart::attention;
    case KernelKind::loss: return TracedPart::loss;
    case KernelKind::optimizer: return TracedPart::optimizer;
    case KernelKind::indexing: return TracedPart::routing;
    case KernelKind::elementwise: {
      const TracedPart fused = by_words(kernel);
      return fused == TracedPart::unknown ? TracedPart::other_elementwise : fused;
    }
    case KernelKind::copies: return TracedPart::casts;
  }
  return TracedPart::unknown;
}

// The names of an operator and of all around it, from the inside out.
struct Chain {
  std::string names;
  bool backward = false;
};

Chain chain_of(const Trace& trace, std::uint32_t launcher) {
  constexpr int deepest = 64;  // of operators within operators
  Chain chain;
  int levels = 0;
  for (std::uint32_t at = launcher; at != no_operator && levels < deepest; ++levels) {
    const TracedOperator& each = trace.operators[at];
    const std::string& name = trace.text(each.name);
    // A compiled region's operators are listed in no name of its own.
    if (!name.starts_with("## Call")) chain.names += name.substr(0, 200) + '\n';
    chain.backward =
        chain.backward || holds(name, "Backward") || name.starts_with("autograd::engine");
    at = each.outer;
  }
  return chain;
}

}  // namespace

TracedPart Attributor::product(const std::string& sizes, bool grouped) const {
  if (grouped) return TracedPart::expert_products;
  // [m, k] times [k, n] has three sides, of which one is the tokens: the others are a weight's.
  OperatorSizes matrices = sizes_of(sizes);
  std::erase_if(matrices, [](const auto& list) { return list.size() < 2; });
  if (matrices.size() < 2) return TracedPart::other_products;
  const auto &left = matrices[0], &right = matrices[1];
  const bool batched = left.size() > 2;
  std::multiset<std::int64_t> sides{left[left.size() - 2], left.back(), right.back()};
  if (const auto tokens = sides.find(tokens_); tokens != sides.end()) sides.erase(tokens);
  const auto has = [&](std::int64_t side) { return side > 0 && sides.contains(side); };
  const std::int64_t queries = model_.heads * model_.head_dim,
                     keys = model_.kv_heads * model_.head_dim;
  if (rank_ > 0 && has(rank_)) return TracedPart::adapter_products;
  if (has(model_.vocab)) return TracedPart::logits_products;
  if (model_.experts > 0 && has(model_.experts)) return TracedPart::routing;
  // Where every layer has experts, no product is a dense MLP's, whose width may be another's too.
  const bool dense = model_.experts == 0 || model_.moe_layers(0, model_.layers) < model_.layers;
  const bool gate_and_up = model_.gated_mlp && has(2 * model_.ffn_hidden);
  if (dense && (has(model_.ffn_hidden) || gate_and_up)) return TracedPart::mlp_products;
  const bool projects = has(queries) || has(keys) || has(queries + 2 * keys);
  if (has(model_.hidden) && projects) return TracedPart::attention_products;
  if (batched && has(model_.head_dim)) return TracedPart::attention;
  const bool of_model = batched || has(model_.hidden) || has(model_.expert_ffn_hidden);
  return of_model ? TracedPart::other_products : TracedPart::unknown;
}

Attribution Attributor::of_product(const std::string& sizes, bool grouped, bool backward) const {
  const TracedPart part = product(sizes, grouped);
  if (part != TracedPart::mlp_products && part != TracedPart::attention_products)
    return {part, backward};
  const OperatorSizes matrices = sizes_of(sizes);
  const bool rows = std::ranges::any_of(
      matrices, [&](const auto& list) { return std::ranges::count(list, tokens_) > 0; });
  return {part, backward, !rows};
}

// Of element-wise operators, which their sizes distinguish.
TracedPart Attributor::by_sizes(std::string_view name, const std::string& sizes) const {
  const auto lists = sizes_of(sizes);
  const std::vector<std::int64_t>* largest = nullptr;
  std::size_t tensors = 0;
  for (const auto& list : lists) {
    tensors += list.empty() ? 0 : 1;
    if (largest == nullptr || list.size() > largest->size()) largest = &list;
  }
  if (largest == nullptr || largest->empty()) return TracedPart::unknown;
  const auto ends_in = [&](std::int64_t side) {
    return side > 0 && std::ranges::any_of(lists, [&](const auto& list) {
             return !list.empty() && list.back() == side;
           });
  };
  const bool adds = name == "aten::add" || name == "aten::add_",
             copies = holds(name, "copy") || name == "aten::to" || name == "aten::clone";
  if (ends_in(model_.vocab)) return TracedPart::loss;
  if (rank_ > 0 && ends_in(rank_)) return TracedPart::adapters;
  // What scales an adapter's result has one tensor, what adds it to the product's two.
  const bool of_activation = ends_in(model_.ffn_hidden) || ends_in(model_.expert_ffn_hidden);
  if (rank_ > 0 && !copies && largest->size() == 3 && (tensors == 1 || (of_activation && adds)))
    return TracedPart::adapters;
  if (copies && (of_activation || ends_in(model_.hidden)))
    return model_.experts > 0 ? TracedPart::routing : TracedPart::casts;
  if (of_activation) return TracedPart::activation;
  if (largest->size() >= 5) return TracedPart::repeat_kv;
  if (largest->size() == 4) return TracedPart::rotary;
  if (ends_in(model_.hidden)) {
    if (adds) return TracedPart::residual;
    return model_.experts > 0 ? TracedPart::routing : TracedPart::norms;
  }
  if (model_.experts > 0 && (ends_in(model_.experts) || ends_in(model_.top_k)))
    return TracedPart::routing;
  if (ends_in(model_.heads * model_.head_dim) || ends_in(model_.kv_heads * model_.head_dim))
    return rank_ > 0 ? TracedPart::adapters : TracedPart::casts;
  if (ends_in(1)) return TracedPart::norms;  // a number a row
  return TracedPart::unknown;
}

Attribution Attributor::of(const Trace& trace, const TracedKernel& kernel) const {
  const std::string& name = trace.text(kernel.name);
  if (is_collective(name)) return {TracedPart::communication, false};
  if (kernel.launcher == no_operator) return {by_kind(name), holds(name, "bwd")};
  const std::uint32_t innermost = operator_of(trace, kernel.launcher);
  const TracedOperator& launcher = trace.operators[innermost];
  const Chain chain = chain_of(trace, innermost);
  const TracedPart worded = by_words(chain.names);
  // What is around a product is its own: of attention and of shards nothing is one.
  const bool is_own = worded == TracedPart::shards || worded == TracedPart::optimizer ||
                      worded == TracedPart::attention;
  const auto is_product = [&](std::string_view word) { return holds(chain.names, word); };
  const bool grouped = holds(chain.names, "grouped_mm") || holds(chain.names, "GroupedMm");
  const std::string& sizes = trace.text(launcher.sizes);
  if (!is_own && kind_of_kernel(name) == KernelKind::products) {
    const Attribution own = of_product(sizes, grouped, chain.backward);
    // Other operators than PyTorch's own products have other inputs than two matrices.
    const std::string& op = trace.text(launcher.name);
    const bool plain = holds(op, "aten::mm") || holds(op, "aten::addmm");
    const bool strange = own.part == TracedPart::unknown && !plain;
    return strange ? Attribution{TracedPart::other_products, chain.backward} : own;
  }
  if (worded != TracedPart::unknown) return {worded, chain.backward};
  if (std::ranges::any_of(product_words, is_product))
    return of_product(sizes, grouped, chain.backward);
  TracedPart part = by_sizes(trace.text(launcher.name), sizes);
  if (part == TracedPart::unknown && sizes.empty()) part = by_kind(name);
  return {part, chain.backward};
}

namespace {

constexpr Word listed[]{{TracedPart::mlp_products, "MLP gate and up"},
                        {TracedPart::mlp_products, "MLP down"},
                        {TracedPart::mlp_products, "MLP up"},
                        {TracedPart::logits_products, "logits"},
                        {TracedPart::adapters, "LoRA sum"},
                        {TracedPart::adapter_products, "LoRA"},
                        {TracedPart::activation, "activation"},
                        {TracedPart::expert_products, "expert"},
                        {TracedPart::attention, "flash attention"},
                        {TracedPart::norms, "norm"},
                        {TracedPart::rotary, "rotary"},
                        {TracedPart::repeat_kv, "repeat keys"},
                        {TracedPart::residual, "residual"},
                        {TracedPart::casts, "linear"},
                        {TracedPart::loss, "cross-entropy"},
                        {TracedPart::loss, "logit"},
                        {TracedPart::embedding, "embedding"},
                        {TracedPart::routing, "rout"},
                        {TracedPart::routing, "permute"},
                        {TracedPart::shards, "shards"},
                        {TracedPart::shards, "unreduced"},
                        {TracedPart::shards, "accumulate"},
                        {TracedPart::optimizer, "optimizer"},
                        {TracedPart::attention, "attention scores"},
                        {TracedPart::attention, "attention context"},
                        {TracedPart::attention_products, "attention projection"},
                        {TracedPart::attention_products, "QKV"},
                        {TracedPart::attention_products, "Q"},
                        {TracedPart::attention_products, "K, V"}};

}  // namespace

TracedPart part_of_listed(std::string_view name) {
  const auto* const row =
      std::ranges::find_if(listed, [&](const Word& word) { return holds(name, word.word); });
  return row == std::end(listed) ? TracedPart::unknown : row->part;
}

}  // namespace planner
