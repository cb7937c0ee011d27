#include "costmodel/operators/layer_builder.hpp"

#include <algorithm>
#include <utility>

namespace costmodel {

LayerBuilder::LayerBuilder(const ModelSpec& model, const LayerContext& context,
                           std::int64_t encoder_sequence)
    : model_(model),
      context_(context),
      encoder_sequence_(encoder_sequence),
      tokens_(context.micro_batch * context.sequence / context.cp),
      local_tokens_(local(tokens_)),
      dropout_(model.dropout > 0),
      window_(model.attention_pattern.empty() ? model.sliding_window : 0) {
  list_.nodes.reserve(24);
  list_.tensors.reserve(40);
}

std::int64_t LayerBuilder::local(std::int64_t tokens) const {
  return context_.sequence_parallel ? ceil_div(tokens, context_.tp) : tokens;
}

TensorId LayerBuilder::tensor(std::string_view name, std::int64_t rows, std::int64_t cols,
                              TensorRole role, double element) {
  list_.tensors.push_back({name, rows, cols, element > 0 ? element : context_.element, role});
  return static_cast<TensorId>(list_.tensors.size() - 1);
}

TensorId LayerBuilder::add(Site site, const Op& op, std::vector<TensorId> inputs, std::int64_t rows,
                           std::int64_t cols, std::vector<TensorId> saved, Region region) {
  const TensorId out = tensor(name_of(site), rows, cols);
  list_.nodes.push_back({site, op, std::move(inputs), out, std::move(saved), region});
  return out;
}

std::optional<double> LayerBuilder::keeps(KernelOp op) const {
  return context_.kernels != nullptr ? context_.kernels->keeps(op, context_.element) : std::nullopt;
}

TensorId LayerBuilder::in_stream(TensorId x) {
  if (const auto each = keeps(KernelOp::residual))
    list_.tensors[static_cast<std::size_t>(x)].element_bytes = *each;
  return x;
}

TensorId LayerBuilder::layer_input() {
  return in_stream(tensor("layer input", local_tokens_, model_.hidden));
}

void LayerBuilder::keep(std::string_view name, std::int64_t rows, std::int64_t cols,
                        std::optional<double> each) {
  if (!each || *each <= 0) return;
  const TensorId own = tensor(name, rows, cols, TensorRole::beside, *each);
  list_.nodes.back().saved.push_back(own);
}

TensorId LayerBuilder::norm(Site site, TensorId x, std::int64_t cols, Normalization kind) {
  const std::int64_t rows = list_.tensors[static_cast<std::size_t>(x)].rows;
  const bool root = kind == Normalization::rmsnorm;
  const std::int64_t figures = root ? 1 : 2;
  const TensorId statistics = tensor("norm statistics", rows, figures, TensorRole::statistics, 4);
  const auto own = keeps(root ? KernelOp::rmsnorm : KernelOp::layernorm);
  const TensorId out = add(site, Norm{rows, cols, kind}, {x}, rows, cols,
                           own ? std::vector{statistics} : std::vector{x, statistics});
  keep("norm in fp32", rows, cols, own);
  return out;
}

TensorId LayerBuilder::layer_norm(Site site, TensorId x) {
  const TensorId out = norm(site, x, model_.hidden);
  list_.nodes.back().region = Region::norm;
  return out;
}

void LayerBuilder::mark(std::size_t first, Region region) {
  for (std::size_t i = first; i < list_.nodes.size(); ++i) {
    if (list_.nodes[i].region == Region::rest) list_.nodes[i].region = region;
  }
}

void LayerBuilder::capture(std::size_t first, GraphScope scope) {
  for (std::size_t i = first; i < list_.nodes.size(); ++i) list_.nodes[i].scope = scope;
}

Bytes LayerBuilder::size_of(std::int64_t rows, std::int64_t cols) const {
  return Bytes(static_cast<double>(rows) * static_cast<double>(cols) * context_.element);
}

TensorId LayerBuilder::split(TensorId x, std::int64_t tokens) {
  if (context_.tp == 1) return x;
  const std::int64_t cols = list_.tensors[static_cast<std::size_t>(x)].cols;
  const Bytes message = size_of(tokens, cols);
  const auto forward =
      context_.sequence_parallel ? CollectiveKind::all_gather : CollectiveKind::none;
  const auto backward =
      context_.sequence_parallel ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
  if (forward ==
      CollectiveKind::none) {  // forward is the identity: the same tensor, no copy is made
    list_.nodes.push_back({Site::enter_tensor_parallel,
                           Collective{forward, backward, Axis::tensor, message},
                           {x},
                           x,
                           {}});
    return x;
  }
  return add(Site::enter_tensor_parallel, Collective{forward, backward, Axis::tensor, message}, {x},
             tokens, cols);
}

TensorId LayerBuilder::join(TensorId x, std::int64_t columns) {
  if (context_.tp == 1) return row_adapters(x, columns);
  const auto forward =
      context_.sequence_parallel ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
  const auto backward =
      context_.sequence_parallel ? CollectiveKind::all_gather : CollectiveKind::none;
  const TensorId sum = add(Site::leave_tensor_parallel,
                           Collective{forward, backward, Axis::tensor, size_of(tokens_, columns)},
                           {x}, local_tokens_, columns);
  return row_adapters(sum, columns);
}

TensorId LayerBuilder::linear(Site site, TensorId x, TensorId kept, std::int64_t rows,
                              std::int64_t n, std::int64_t k, bool bias) {
  const bool adapts = context_.tuning.adapts();
  const bool regather = context_.sequence_parallel && kept != x && !adapts;
  const bool wide = site == Site::logits;
  if (context_.saved_input > 0 && !wide) {  // the cast operand is kept, not what it was cast from
    const std::int64_t held = list_.tensors[static_cast<std::size_t>(kept)].rows;
    kept = tensor("narrow input", held, k, TensorRole::activation, context_.saved_input);
  }
  const Linear product{.m = rows,
                       .n = n,
                       .k = k,
                       .bias = bias,
                       .regather = regather,
                       .wide = wide,
                       .narrow_weight = keeps_narrow_weights(),
                       .weight_once = keeps_narrow_base() && context_.one_scale};
  return add(site, product, with_weight(site, x, n, k), rows, n, {kept});
}

// The residual adds the bias of the product that made `x`; a collective may be in between.
void LayerBuilder::leave_bias(TensorId x) {
  for (auto node = list_.nodes.rbegin(); node != list_.nodes.rend(); ++node) {
    if (node->output != x) continue;
    if (auto* product = std::get_if<Linear>(&node->op)) product->bias_in_residual = true;
    if (!std::holds_alternative<Collective>(node->op)) return;
    x = node->inputs.front();
  }
}

TensorId LayerBuilder::residual(Site site, TensorId x, TensorId skip) {
  const BiasDropoutAdd op{local_tokens_, model_.hidden, model_.linear_bias, dropout_,
                          context_.fused_bias_dropout_add};
  if (op.bias) leave_bias(x);
  const TensorId out = in_stream(add(site, op, {x, skip}, local_tokens_, model_.hidden));
  if (dropout_) {
    const TensorId mask = tensor("dropout mask", local_tokens_, model_.hidden, TensorRole::mask, 1);
    list_.nodes.back().saved.push_back(mask);
  }
  return out;
}

OpList LayerBuilder::finish(TensorId input, TensorId output) {
  list_.input = input;
  list_.output = output;
  if (context_.tuning.adapts()) freeze();
  return std::move(list_);
}

// Low-rank adapters beside frozen products (Hu et al. 2021, arXiv:2106.09685, equation 3): y = W x
// + alpha / r B A x. Over tensor ranks they are cut as NVIDIA Megatron-Bridge cuts them
// (src/megatron/bridge/peft/utils.py, ParallelLinearAdapter; lora.py: one for each product,
// canonical_lora.py: q, k, v, gate and up have adapters of their own).
namespace {

struct AdapterSites {
  Site in, out;  // A and B
};

AdapterSites sites_of(AdapterTarget target) {
  switch (target) {
    case AdapterTarget::q: return {Site::q_adapter_in, Site::q_adapter_out};
    case AdapterTarget::k: return {Site::k_adapter_in, Site::k_adapter_out};
    case AdapterTarget::v: return {Site::v_adapter_in, Site::v_adapter_out};
    case AdapterTarget::o: return {Site::o_adapter_in, Site::o_adapter_out};
    case AdapterTarget::gate: return {Site::gate_adapter_in, Site::gate_adapter_out};
    case AdapterTarget::up: return {Site::up_adapter_in, Site::up_adapter_out};
    case AdapterTarget::down: return {Site::down_adapter_in, Site::down_adapter_out};
  }
  return {};
}

bool is_adapter(Site site) {
  return site >= Site::q_adapter_in && site <= Site::gate_up_adapter_out;
}

// Adapters stay in 16 bits among narrower products (Megatron-Bridge, peft/utils.py:
// ParallelLinearAdapter's matrices are plain parallel linears in params_dtype).
Linear adapter_product(std::int64_t rows, std::int64_t n, std::int64_t k) {
  return {.m = rows, .n = n, .k = k, .bias = false, .regather = false, .wide = true};
}

bool is_matrix(const Op& op) {
  return std::holds_alternative<Linear>(op) || std::holds_alternative<GroupedLinear>(op);
}

bool reads_weight(const OpList& list, const Node& node) {
  return std::ranges::any_of(node.inputs, [&](TensorId id) {
    return list.tensors[static_cast<std::size_t>(id)].role == TensorRole::weight;
  });
}

}  // namespace

TensorId LayerBuilder::adapter_input(TensorId x) {
  if (context_.tuning.dropout <= 0) return x;
  const TensorInfo& info = list_.tensors[static_cast<std::size_t>(x)];
  const std::int64_t rows = info.rows, cols = info.cols;
  const TensorId mask = tensor("adapter dropout mask", rows, cols, TensorRole::mask, 1);
  return add(Site::adapter_dropout, Dropout{rows, cols}, {x}, rows, cols, {mask});
}

TensorId LayerBuilder::adapter_sum(TensorId y, TensorId result, std::int64_t inner) {
  const TensorInfo& info = list_.tensors[static_cast<std::size_t>(y)];
  const std::int64_t rows = info.rows, cols = info.cols;
  const std::int64_t width = list_.tensors[static_cast<std::size_t>(result)].cols;
  return add(Site::adapter_sum, AdapterSum{rows, width, inner, context_.scales_adapter_output},
             {y, result}, rows, cols);
}

// Beside a column-parallel product A is cut by its rank and its result gathered; B is cut as the
// base. Without sequence parallelism A's input gradient is summed by itself.
TensorId LayerBuilder::column_adapters(TensorId y, TensorId x,
                                       std::initializer_list<AdaptedPart> parts) {
  const std::int64_t r = context_.tuning.rank, t = context_.tp;
  struct Adapter {
    AdapterSites sites;
    std::int64_t columns;
  };
  std::vector<Adapter> adapters;
  for (const AdaptedPart& part : parts) {
    if (!context_.tuning.has(part.target)) continue;
    if (context_.tuning.joint && !adapters.empty()) {
      const std::int64_t columns = adapters.front().columns + part.columns;
      adapters = {{part.target == AdapterTarget::up
                       ? AdapterSites{Site::gate_up_adapter_in, Site::gate_up_adapter_out}
                       : AdapterSites{Site::qkv_adapter_in, Site::qkv_adapter_out},
                   columns}};
    } else {
      adapters.push_back({sites_of(part.target), part.columns});
    }
  }
  for (const Adapter& part : adapters) {
    const auto [in, out] = part.sites;
    const TensorInfo& info = list_.tensors[static_cast<std::size_t>(x)];
    const std::int64_t rows = info.rows, k = info.cols;
    const TensorId read = adapter_input(x);
    const auto copied = keeps(KernelOp::adapter);
    if (t > 1 && !context_.sequence_parallel) {
      list_.nodes.push_back({Site::adapter_gradient,
                             Collective{CollectiveKind::none, CollectiveKind::all_reduce,
                                        Axis::tensor, size_of(rows, k)},
                             {read},
                             read,
                             {}});
    }
    TensorId low = add(in, adapter_product(rows, r / t, k), {read}, rows, r / t,
                       copied ? std::vector<TensorId>{} : std::vector{read});
    keep("adapter's input", rows, k, copied);
    if (t > 1) {  // backward: B's input gradient is summed
      low = add(Site::adapter_gather,
                Collective{CollectiveKind::all_gather, CollectiveKind::all_reduce, Axis::tensor,
                           size_of(rows, r)},
                {low}, rows, r);
    }
    const TensorId result =
        add(out, adapter_product(rows, part.columns, r), {low}, rows, part.columns, {low});
    y = adapter_sum(y, result, k);
  }
  return y;
}

// PEFT wraps the projections of each expert, which transformers keeps as modules of their own
// (peft/tuners/lora/layer.py; Qwen3MoeMLP). Their products are grouped as the experts' own are.
TensorId LayerBuilder::expert_adapters(TensorId y, TensorId x, std::int64_t local,
                                       std::initializer_list<AdaptedPart> parts) {
  const std::int64_t r = context_.tuning.rank;
  for (const AdaptedPart& part : parts) {
    if (!context_.tuning.has(part.target)) continue;
    const auto [in, out] = sites_of(part.target);
    const TensorInfo& info = list_.tensors[static_cast<std::size_t>(x)];
    const std::int64_t rows = info.rows, k = info.cols;
    const TensorId read = adapter_input(x);
    const auto copied = keeps(KernelOp::adapter);
    const auto grouped = [&](std::int64_t n, std::int64_t inner) {
      return GroupedLinear{rows, n, inner, local, false, context_.expert_start};
    };
    const TensorId low = add(in, grouped(r, k), {read}, rows, r,
                             copied ? std::vector<TensorId>{} : std::vector{read});
    keep("adapter's input", rows, k, copied);
    const TensorId result = add(out, grouped(part.columns, r), {low}, rows, part.columns, {low});
    y = adapter_sum(y, result, k);
  }
  return y;
}

void LayerBuilder::row_adapter(TensorId x, AdapterTarget target) {
  if (context_.tuning.has(target)) waiting_.push_back({x, target});
}

// Beside a row-parallel product A is cut as the base and its result summed; B is cut by its
// columns, and what it makes is gathered. Sequence parallelism then keeps each rank's own tokens,
// or an all-to-all sends a rank these alone (NeMo, a2a_experimental).
TensorId LayerBuilder::row_adapters(TensorId y, std::int64_t columns) {
  const std::int64_t r = context_.tuning.rank, t = context_.tp;
  for (const WaitingAdapter& one : std::exchange(waiting_, {})) {
    const auto [in, out] = sites_of(one.target);
    const TensorInfo& info = list_.tensors[static_cast<std::size_t>(one.x)];
    const std::int64_t rows = info.rows, k = info.cols;
    const TensorId read = adapter_input(one.x);
    const auto copied = keeps(KernelOp::adapter);
    TensorId low = add(in, adapter_product(rows, r, k), {read}, rows, r,
                       copied ? std::vector<TensorId>{} : std::vector{read});
    keep("adapter's input", rows, k, copied);
    if (t > 1) {
      const auto sum = CollectiveKind::all_reduce;
      low = add(Site::adapter_gather, Collective{sum, sum, Axis::tensor, size_of(rows, r)}, {low},
                rows, r);
    }
    TensorId result =
        add(out, adapter_product(rows, columns / t, r), {low}, rows, columns / t, {low});
    if (t > 1 && context_.tuning.all_to_all && context_.sequence_parallel) {
      const auto exchange = CollectiveKind::all_to_all;
      result = add(Site::adapter_result_gather,
                   Collective{exchange, exchange, Axis::tensor, size_of(rows, columns / t)},
                   {result}, local_tokens_, columns);
    } else if (t > 1) {
      const auto gather = CollectiveKind::all_gather;
      const auto backward = context_.sequence_parallel ? gather : CollectiveKind::none;
      result = add(Site::adapter_result_gather,
                   Collective{gather, backward, Axis::tensor, size_of(rows, columns)}, {result},
                   rows, columns);
    }
    y = adapter_sum(y, result, k);
  }
  return y;
}

// The output projection is not quantised (transformers, integrations/bitsandbytes.py:
// replace_with_bnb_linear leaves lm_head as it is), nor the router, nor experts that are parameters
// and no modules.
std::vector<TensorId> LayerBuilder::with_weight(Site site, TensorId x, std::int64_t n,
                                                std::int64_t k) {
  const FineTuning& tuning = context_.tuning;
  const bool of_experts =
      site == Site::expert_up || site == Site::expert_gate_and_up || site == Site::expert_down;
  if (tuning.base == BasePrecision::bf16 || keeps_narrow_base() || site == Site::logits ||
      (of_experts && !tuning.quantised_experts))
    return {x};
  const double stored = tuning.base_bytes(context_.element);
  const TensorId weight = tensor("dequantised weight", n, k, TensorRole::weight);
  list_.nodes.push_back({Site::dequantised_weight, Dequantise{n, k, stored}, {}, weight, {}});
  return {x, weight};
}

bool LayerBuilder::keeps_narrow_weights() const {
  return context_.keeps_narrow_weights || keeps_narrow_base();
}

bool LayerBuilder::keeps_narrow_base() const {
  return context_.operands_of_8_bits && context_.tuning.adapts() &&
         context_.tuning.base == BasePrecision::fp8;
}

// Only adapters are trained: all other weights are frozen. A frozen product keeps no input, and
// what has no gradient keeps nothing. A base in mxfp8 is kept by rows and by columns, whose blocks
// have scales of their own; one with a scale a tensor once, and transposed when a gradient needs it
// (disable_parameter_transpose_cache of NeMo's scripts/performance/llm/finetune_llama3_70b.py and
// of NVIDIA's MLPerf v4.0 code).
void LayerBuilder::freeze() {
  list_.adapted = true;
  for (Node& node : list_.nodes) {
    if (is_adapter(node.site)) continue;
    const auto* product = std::get_if<Linear>(&node.op);
    const auto* experts = std::get_if<GroupedLinear>(&node.op);
    const bool narrow = product != nullptr && product->narrow_weight && !product->wide;
    const bool once = narrow ? product->weight_once : reads_weight(list_, node);
    const bool twice = experts != nullptr ? experts->narrow_weight : narrow && !once;
    const FineTuning& tuning = context_.tuning;
    const double stored = experts != nullptr && !tuning.quantised_experts
                              ? context_.element
                              : tuning.base_bytes(context_.element);
    node.frozen_bytes = twice ? 2 * stored : once ? stored : context_.element;
    if (is_matrix(node.op)) node.saved.clear();
  }
  const std::vector<bool> gradient = with_gradient(list_);
  for (Node& node : list_.nodes) {
    if (!gradient[static_cast<std::size_t>(node.output)]) node.saved.clear();
  }
}

}  // namespace costmodel
