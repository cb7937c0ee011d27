#include "costmodel/operators/op.hpp"

#include <array>

namespace costmodel {

namespace {

double area(std::int64_t rows, std::int64_t cols) {
  return static_cast<double>(rows) * static_cast<double>(cols);
}

Work product(double batch, double m, double n, double k, double element) {
  const Flops flops(2 * batch * m * n * k);
  return {flops, flops, Bytes(batch * (m * n + n * k + m * k) * element), 1};
}

// An element-wise pass: bytes per element, elements, kernels.
Work elementwise(double elements, double bytes_per_element, int kernels) {
  return {Flops(0), Flops(0), Bytes(elements * bytes_per_element), kernels};
}

Work work(const Linear& o, Pass pass, double e) {
  const auto m = static_cast<double>(o.m), n = static_cast<double>(o.n),
             k = static_cast<double>(o.k);
  Work w = product(1, m, n, k, e);
  if (pass == Pass::weight_gradient && o.bias)
    w += elementwise(m * n, e, 1);  // column sums of the output gradient
  return w;
}

Work work(const GroupedLinear& o, Pass pass, double e) {
  const auto groups = static_cast<double>(o.experts), rows = static_cast<double>(o.m) / groups,
             n = static_cast<double>(o.n), k = static_cast<double>(o.k);
  Work w = product(groups, rows, n, k, e);
  if (pass == Pass::weight_gradient && o.bias) w += elementwise(rows * groups * n, e, 1);
  return w;
}

// Backward reads the input twice and its gradient, and sums the taps' gradients.
Work work(const Convolution& o, Pass pass, double e) {
  const double n = area(o.rows, o.cols);
  return pass == Pass::forward ? elementwise(n, 2 * e, 1) : elementwise(n, 4 * e, 1);
}

// Model FLOPs by Megatron-LM's convention (num_floating_point_operations in
// megatron/training/training.py): four products of the state's size for each head and token. A
// chunk's kernels execute, in each head, K·Kᵀ and Q·Kᵀ, the inverse of a triangle times K and V,
// and the products with the states before and after it (arXiv:2412.06464, equations 8 and 9).
Work delta_work(const Scan& o, Pass pass, double e) {
  const auto q = static_cast<double>(o.chunk_tokens()), v = static_cast<double>(o.head_dim),
             k = static_cast<double>(o.state), a = static_cast<double>(o.heads),
             g = static_cast<double>(o.groups), chunks = static_cast<double>(o.chunks()),
             decays = static_cast<double>(o.decays);
  const double tokens = static_cast<double>(o.sequences) * static_cast<double>(o.s);
  const double model = 8 * tokens * a * k * v;
  const double executed = chunks * a * (6 * q * q * k + 4 * q * q * v + 6 * q * k * v);
  const double moved =
      tokens * (2 * g * k + 2 * a * v + a * (1 + decays)) * e + 4 * chunks * a * k * v * 4;
  if (pass == Pass::forward) return {Flops(model), Flops(executed), Bytes(moved), 6};
  return {Flops(2 * model), Flops(3 * executed), Bytes(2 * moved), 12};
}

// Model FLOPs by Megatron-LM's convention: 7 per channel, state and token. The kernels execute C·Bᵀ
// in every group, and in every head its product with x, each chunk's state and the contribution of
// the states to the result; backward executes two products for each of these and recomputes the
// first.
Work work(const Scan& o, Pass pass, double e) {
  const auto q = static_cast<double>(o.chunk_tokens()), p = static_cast<double>(o.head_dim),
             n = static_cast<double>(o.state), a = static_cast<double>(o.heads),
             g = static_cast<double>(o.groups), chunks = static_cast<double>(o.chunks());
  const double tokens = static_cast<double>(o.sequences) * static_cast<double>(o.s);
  if (o.rule == ScanRule::delta || o.rule == ScanRule::rwkv) return delta_work(o, pass, e);
  // A linear attention's state is written and read once: two products of its size a token.
  const double model = (o.rule == ScanRule::linear ? 4 : 7) * tokens * a * p * n;
  if (o.rule == ScanRule::channels) {
    // x, its step, the gate and the result of each channel, B and C; states stay on the chip, and
    // backward computes them again (arXiv:2312.00752, section 3.3.2).
    const double once = tokens * (4 * a * p + 2 * n) * e;
    if (pass == Pass::forward) return {Flops(model), Flops(0), Bytes(once), 1};
    return {Flops(2 * model), Flops(0), Bytes(2 * once), 1};
  }
  const double executed = chunks * (2 * q * q * n * g + a * (2 * q * q * p + 4 * q * n * p));
  const double moved = tokens * (2 * a * p + 2 * g * n + a) * e + 4 * chunks * a * p * n * 4;
  if (pass == Pass::forward) return {Flops(model), Flops(executed), Bytes(moved), 5};
  return {Flops(2 * model), Flops(3 * executed), Bytes(2 * moved), 10};
}

// Forward: cast to fp32, softmax, top-k, two scatters (probabilities, map), tokens per expert.
// Backward: the first four of these.
Work work(const Routing& o, Pass pass, double e) {
  const double n = area(o.rows, o.cols);
  return pass == Pass::forward ? elementwise(n, e + 6 * 4, 6) : elementwise(n, e + 4 * 4, 4);
}

Work work(const Permute& o, Pass, double e) {
  return elementwise(area(o.rows, o.cols), (1 + static_cast<double>(o.copies)) * e, 1);
}

// The kernels compute what a window masks as well; the model's FLOPs are without it.
template <class Core>
Work within(const Core& o, Work w) {
  const std::int64_t keys = o.key_count();
  w.model = w.model * (static_cast<double>(window_of(o.window, keys)) / static_cast<double>(keys));
  return w;
}

Work work(const AttentionScores& o, Pass pass, double e) {
  const auto batch = static_cast<double>(o.batch), s = static_cast<double>(o.s),
             d = static_cast<double>(o.head_dim), keys = static_cast<double>(o.key_count());
  Work w = product(batch, s, keys, d, e);
  if (pass != Pass::forward) w += product(batch, s, d, keys, e);  // dQ and dK
  return within(o, w);
}

Work work(const AttentionContext& o, Pass pass, double e) {
  const auto batch = static_cast<double>(o.batch), s = static_cast<double>(o.s),
             d = static_cast<double>(o.head_dim), keys = static_cast<double>(o.key_count());
  Work w = product(batch, s, d, keys, e);
  if (pass != Pass::forward) w += product(batch, s, keys, d, e);  // dP and dV
  return within(o, w);
}

Work work(const Softmax& o, Pass pass, double e) {
  const double n = area(o.rows, o.cols);
  const double read = o.triangular ? 0.5 : 1;
  if (o.fused) return elementwise(n, ((pass == Pass::forward ? 1 : 2) * read + 1) * e, 1);
  // Unfused, in fp32, as the scaling of queries and keys by layer requires (Megatron-LM,
  // FusedScaleMaskSoftmax.forward_torch_softmax): cast, scale, mask, softmax, cast back.
  return pass == Pass::forward ? elementwise(n, 2 * e + 32, 5) : elementwise(n, 2 * e + 36, 5);
}

Work work(const FlashAttention& o, Pass pass, double e) {
  const auto s = static_cast<double>(o.s), d = static_cast<double>(o.head_dim);
  const auto keys = static_cast<double>(o.key_count()), blocks = static_cast<double>(o.blocks);
  const auto heads = static_cast<double>(o.sequences * o.heads);
  const auto kv_heads = static_cast<double>(o.sequences * o.kv_heads);
  const auto dv = static_cast<double>(o.value_dim());
  const double reach = o.reach();
  const double scores = 2 * heads * s * reach * d, context = 2 * heads * s * reach * dv;
  const double executed = o.causal_skip ? o.unmasked() : 1.0;
  const double q = heads * s * d, out = heads * s * dv, kv = kv_heads * keys * (d + dv);
  // The result of every block except the first is added to the accumulated one: out, or dQ, dK and
  // dV.
  const double again = 3 * (blocks - 1);
  const auto calls = static_cast<int>(o.blocks);
  // Forward computes QKᵀ and PV. Backward computes five products (the scores again, dV, dP, dQ,
  // dK); its model FLOPs count four.
  if (pass == Pass::forward) {
    return {Flops(scores + context), Flops((scores + context) * executed),
            Bytes(((q + out) * blocks + kv + out * again) * e), 2 * calls - 1};
  }
  return {Flops(2 * (scores + context)), Flops((3 * scores + 2 * context) * executed),
          Bytes((2 * (q + out) * blocks + 2 * kv + q * again + kv * again / blocks) * e),
          4 * calls - 2};
}

Work work(const Dropout& o, Pass, double e) {
  return elementwise(area(o.rows, o.cols), 2 * e + 1, 1);
}

Work work(const Norm& o, Pass pass, double e) {
  const double n = area(o.rows, o.cols);
  if (o.gated) return elementwise(n, (pass == Pass::forward ? 3 : 5) * e, 1);
  return pass == Pass::forward ? elementwise(n, 2 * e, 1) : elementwise(n, 3 * e, 2);
}

Work work(const Activation& o, Pass pass, double e) {
  const double n = area(o.rows, o.cols);
  const double inputs = o.gated ? 2 : 1;
  if (o.in_product) return {};
  Work w = pass == Pass::forward ? elementwise(n, (inputs + 1) * e, 1)
                                 : elementwise(n, (2 * inputs + 1) * e, 1);
  if (!o.fused_bias && pass == Pass::forward) w += elementwise(n * inputs, 2 * e, 1);
  return w;
}

Work work(const BiasDropoutAdd& o, Pass pass, double e) {
  const double n = area(o.rows, o.cols);
  const double mask = o.dropout ? 1 : 0;
  if (pass != Pass::forward) {  // the masked gradient, and the sum of the two branches' gradients
    return elementwise(n, (o.dropout ? 2 * e : 0) + mask + 3 * e, o.dropout ? 2 : 1);
  }
  if (o.fused) return elementwise(n, 3 * e + mask, 1);
  Work w = elementwise(n, 3 * e, 1);
  if (o.bias) w += elementwise(n, 2 * e, 1);
  if (o.dropout) w += elementwise(n, 2 * e + mask, 1);
  return w;
}

Work work(const Rotary& o, Pass, double e) { return elementwise(area(o.rows, o.cols), 2 * e, 1); }

Work work(const Embedding& o, Pass pass, double e) {
  const double n = area(o.rows, o.cols);
  return pass == Pass::forward ? elementwise(n, 2 * e, 1) : elementwise(n, 3 * e, 2);
}

Work work(const PositionEmbedding& o, Pass pass, double e) {
  const double n = area(o.rows, o.cols);
  return pass == Pass::forward ? elementwise(n, 3 * e, 2) : elementwise(n, 2 * e, 1);
}

// How often a pass of the loss reads or writes each logit in the width of activations and in fp32,
// and its kernels.
struct LossPass {
  double narrow, wide;
  int kernels;
};

// By kernel, forward and backward.
//   unfused  cast to fp32, row maximum, subtraction, exponential, row sum, division; scaling and
//            the cast back (Megatron-LM @d98e8a64dd, core/tensor_parallel/cross_entropy.py)
//   native   three compiled functions with a collective between them: the cast with the row
//            maximum, the exponential with its sum, the division, and three kernels of rows; the
//            gradient's function subtracts at the targets in a copy, which torch.compile makes
//            because they index a view of its input, and scales that into the softmax and into the
//            16-bit result (core/fusions/fused_cross_entropy.py; torch/_inductor/fx_passes/
//            reinplace.py)
//   te       maximum and sum, then the gradient in the place of the logits; backward scales it
//            (Transformer Engine 2.2 to 2.17, pytorch/triton/cross_entropy.py)
//   flash    maximum, then sum; the gradient from the logits
//   compiled both in one reading of the logits; the gradient from them
constexpr std::array<std::array<LossPass, 2>, loss_kernel_names.size()> loss_passes{{
    {{{1, 9, 7}, {1, 3, 3}}},
    {{{1, 5, 6}, {1, 4, 3}}},
    {{{3, 0, 2}, {2, 0, 1}}},
    {{{2, 0, 2}, {2, 0, 1}}},
    {{{1, 0, 2}, {2, 0, 1}}},
}};

Work work(const CrossEntropy& o, Pass pass, double e) {
  const auto& p = loss_passes[static_cast<std::size_t>(o.kernel)][pass == Pass::forward ? 0 : 1];
  return elementwise(area(o.rows, o.cols), p.narrow * e + p.wide * 4, p.kernels);
}

Work work(const Dequantise& o, Pass, double e) {
  return elementwise(area(o.rows, o.cols), o.stored + e, 1);
}

Work work(const UnfusedPasses& o, Pass pass, double) {
  const Passes& all = pass == Pass::forward ? o.forward : o.backward;
  return elementwise(area(o.rows, o.cols), all.bytes, all.kernels);
}

Work work(const AdapterSum& o, Pass pass, double e) {
  const double scaled = o.scales ? 2 * e * area(o.rows, o.cols) : 0;
  const double added = 3 * e * area(o.rows, pass == Pass::forward ? o.cols : o.inner);
  return elementwise(1, scaled + added, o.scales ? 2 : 1);
}

Work work(const Collective&, Pass, double) {
  return {};
}  // priced by the network, not by the device

}  // namespace

std::string_view name_of(const Op& op) {
  return std::visit(Visitor{
                        [](const Linear&) { return "linear"; },
                        [](const Convolution&) { return "convolution"; },
                        [](const Scan&) { return "scan"; },
                        [](const GroupedLinear&) { return "grouped linear"; },
                        [](const Routing&) { return "routing"; },
                        [](const Permute&) { return "permute"; },
                        [](const AttentionScores&) { return "attention scores"; },
                        [](const AttentionContext&) { return "attention context"; },
                        [](const Softmax&) { return "softmax"; },
                        [](const FlashAttention&) { return "flash attention"; },
                        [](const Dropout&) { return "dropout"; },
                        [](const Norm&) { return "norm"; },
                        [](const Activation&) { return "activation"; },
                        [](const BiasDropoutAdd&) { return "bias-dropout-add"; },
                        [](const Rotary&) { return "rotary"; },
                        [](const Embedding&) { return "embedding"; },
                        [](const PositionEmbedding&) { return "position embedding"; },
                        [](const CrossEntropy&) { return "cross-entropy"; },
                        [](const Dequantise&) { return "dequantise"; },
                        [](const AdapterSum&) { return "adapter sum"; },
                        [](const UnfusedPasses&) { return "unfused passes"; },
                        [](const Collective&) { return "collective"; },
                    },
                    op);
}

namespace {

// Mamba-2: A, D and the time step's bias of each head. Mamba-1: A of each channel's states and D;
// the product that makes the time step has its bias. A delta net: decay and its bias of each head.
double scan_weights(const Scan& o) {
  const auto heads = static_cast<double>(o.heads);
  switch (o.rule) {
    case ScanRule::state_space: return 3 * heads;
    case ScanRule::channels: return heads * static_cast<double>(o.state + 1);
    case ScanRule::delta: return heads * static_cast<double>(1 + o.decays);
    case ScanRule::rwkv:
    case ScanRule::linear: return 0;
  }
  return 0;
}

}  // namespace

double weights_of(const Op& op) {
  return std::visit(
      Visitor{
          [](const Linear& o) { return area(o.n, o.k) + (o.bias ? static_cast<double>(o.n) : 0); },
          [](const GroupedLinear& o) {
            const double matrix = area(o.n, o.k) + (o.bias ? static_cast<double>(o.n) : 0);
            return matrix * static_cast<double>(o.experts);
          },
          [](const Convolution& o) { return area(o.cols, o.taps + (o.bias ? 1 : 0)); },
          [](const Scan& o) { return scan_weights(o); },
          [](const Routing&) { return 0.0; },
          [](const Permute&) { return 0.0; },
          [](const AttentionScores&) { return 0.0; },
          [](const AttentionContext&) { return 0.0; },
          [](const Softmax& o) { return static_cast<double>(o.sinks); },
          [](const FlashAttention& o) { return o.sinks ? static_cast<double>(o.heads) : 0.0; },
          [](const Dropout&) { return 0.0; },
          [](const Norm& o) {
            return static_cast<double>(o.cols * o.gains) *
                   (o.kind == Normalization::layernorm ? 2 : 1);
          },
          [](const Activation&) { return 0.0; },
          [](const BiasDropoutAdd&) { return 0.0; },
          [](const Rotary&) { return 0.0; },
          [](const Embedding& o) { return area(o.vocab, o.cols); },
          [](const PositionEmbedding& o) { return area(o.positions, o.cols); },
          [](const CrossEntropy&) { return 0.0; },
          [](const Dequantise&) { return 0.0; },
          [](const AdapterSum&) { return 0.0; },
          [](const UnfusedPasses&) { return 0.0; },
          [](const Collective&) { return 0.0; },
      },
      op);
}

bool is_expert(const Op& op) { return std::holds_alternative<GroupedLinear>(op); }

bool is_product(const Op& op) {
  return std::visit(Visitor{
                        [](const Linear&) { return true; },
                        [](const GroupedLinear&) { return true; },
                        [](const Convolution&) { return false; },
                        [](const Scan&) { return true; },
                        [](const Routing&) { return false; },
                        [](const Permute&) { return false; },
                        [](const AttentionScores&) { return true; },
                        [](const AttentionContext&) { return true; },
                        [](const Softmax&) { return false; },
                        [](const FlashAttention&) { return true; },
                        [](const Dropout&) { return false; },
                        [](const Norm&) { return false; },
                        [](const Activation&) { return false; },
                        [](const BiasDropoutAdd&) { return false; },
                        [](const Rotary&) { return false; },
                        [](const Embedding&) { return false; },
                        [](const PositionEmbedding&) { return false; },
                        [](const CrossEntropy&) { return false; },
                        [](const Dequantise&) { return false; },
                        [](const AdapterSum&) { return false; },
                        [](const UnfusedPasses&) { return false; },
                        [](const Collective&) { return false; },
                    },
                    op);
}

Work work_of(const Op& op, Pass pass, double element) {
  return std::visit([&](const auto& o) { return work(o, pass, element); }, op);
}

bool has_pass(const Op& op, Pass pass) {
  if (pass != Pass::weight_gradient) return true;
  return std::holds_alternative<Linear>(op) ||
         std::holds_alternative<GroupedLinear>(
             op);  // norms and tables get their weight gradient in the same kernel
}

}  // namespace costmodel
