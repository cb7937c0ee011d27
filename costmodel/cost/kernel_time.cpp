#include "costmodel/cost/kernel_time.hpp"

#include <algorithm>

namespace costmodel {

namespace {

struct Elements {
  KernelOp op;
  double count, source = 0;
};

double area(std::int64_t rows, std::int64_t cols) {
  return static_cast<double>(rows) * static_cast<double>(cols);
}

KernelOp norm_kernel(const Norm& o) {
  if (o.gains > 1) return KernelOp::head_norm;
  return o.kind == Normalization::rmsnorm ? KernelOp::rmsnorm : KernelOp::layernorm;
}

std::optional<Elements> elements_of(const Op& op) {
  using Found = std::optional<Elements>;
  const auto all = [](const auto& o, KernelOp kernel) -> Found {
    return Elements{kernel, area(o.rows, o.cols)};
  };
  return std::visit(
      Visitor{
          [&](const Norm& o) { return all(o, norm_kernel(o)); },
          [&](const BiasDropoutAdd& o) { return all(o, KernelOp::residual); },
          [&](const Dropout& o) { return all(o, KernelOp::dropout); },
          [&](const Activation& o) {
            if (o.in_product) return Found{};
            return all(o, o.gated ? KernelOp::gated_activation : KernelOp::activation);
          },
          [&](const Rotary& o) { return all(o, KernelOp::rotary); },
          [&](const Softmax& o) { return all(o, KernelOp::softmax); },
          [](const Embedding& o) -> Found {
            return Elements{KernelOp::embedding, area(o.rows, o.cols), area(o.vocab, o.cols)};
          },
          [&](const CrossEntropy& o) {
            if (o.kernel == LossKernel::unfused) return all(o, KernelOp::cross_entropy);
            if (o.kernel == LossKernel::compiled) return all(o, KernelOp::compiled_cross_entropy);
            return Found{};
          },
          [](const Routing& o) -> Found {
            return Elements{KernelOp::routing, area(o.rows, o.cols), area(o.rows, o.top_k)};
          },
          [](const Permute& o) -> Found {
            return Elements{o.sums ? KernelOp::unpermute : KernelOp::permute,
                            area(o.rows, o.cols) * static_cast<double>(o.copies),
                            area(o.rows, o.cols)};
          },
          [](const AdapterSum& o) -> Found {
            return Elements{KernelOp::adapter, area(o.rows, o.cols), area(o.rows, o.inner)};
          },
          [](const auto&) -> Found { return {}; },
      },
      op);
}

KernelKind kind_of(KernelOp op) {
  switch (op) {
    case KernelOp::linear:
    case KernelOp::after_norm:
    case KernelOp::unreduced:
    case KernelOp::shards: return KernelKind::copies;
    case KernelOp::softmax:
    case KernelOp::cross_entropy:
    case KernelOp::compiled_cross_entropy: return KernelKind::loss;
    case KernelOp::embedding:
    case KernelOp::permute: return KernelKind::indexing;
    case KernelOp::optimizer: return KernelKind::optimizer;
    default: return KernelKind::elementwise;
  }
}

}  // namespace

std::optional<KernelTime> kernel_time(const KernelSet& set, KernelOp op, bool forward,
                                      double elements, double source, double element,
                                      const DeviceSpec& device) {
  const KernelPass* pass = set.find(op, forward);
  if (pass == nullptr) return std::nullopt;
  const double source_rate = pass->source_rate > 0 ? pass->source_rate : pass->rate;
  const Bytes of_source(pass->source_bytes(source, element));
  const Bytes moved = Bytes(pass->own_bytes(elements, element)) + of_source;
  const Seconds reading = of_source / BytesPerSecond(device.memory_bandwidth.value * source_rate);
  const Seconds streaming =
      reading + (moved - of_source) / BytesPerSecond(device.memory_bandwidth.value * pass->rate);
  const BytesPerSecond best(device.memory_bandwidth.value * device.memory_efficiency);
  const double copied = streaming.value > 0 ? pass->source_copies * (reading / streaming) : 0;
  KernelTime kernels{streaming * pass->slowed(device.memory_bandwidth.value) +
                         device.memory_half * pass->kernels / best + pass->latency,
                     moved,
                     pass->kernels,
                     {},
                     kind_of(op),
                     kernel_op_names[static_cast<std::size_t>(op)],
                     pass->copies + copied,
                     pass->indexing};
  as_traced(kernels, device);
  return kernels;
}

void as_traced(KernelTime& kernels, const DeviceSpec& device) {
  const auto factor = [&](KernelKind kind) {
    return device.kind_factor[static_cast<std::size_t>(kind)];
  };
  const double copies = kernels.copies * factor(KernelKind::copies),
               indexing = kernels.indexing * factor(KernelKind::indexing),
               all = (1 - kernels.copies - kernels.indexing) * factor(kernels.kind) + copies +
                     indexing;
  if (all == 1 || all <= 0) return;
  kernels.time *= all;
  kernels.copies = copies / all;
  kernels.indexing = indexing / all;
}

KernelBound bound_of(const KernelTime& kernels, const DeviceSpec& device) {
  const BytesPerSecond best(device.memory_bandwidth.value * device.memory_efficiency);
  const Seconds start = device.memory_half * kernels.kernels / best, bytes = kernels.moved / best;
  constexpr double rounding = 1.001;
  if (kernels.executed.value > 0 && kernels.time > (start + bytes) * rounding)
    return KernelBound::arithmetic;
  return start > bytes ? KernelBound::start : KernelBound::memory;
}

KernelKind kind_of(const Op& op, Pass pass) {
  return std::visit(Visitor{
                        [](const Linear&) { return KernelKind::products; },
                        [](const GroupedLinear&) { return KernelKind::products; },
                        [](const AttentionScores&) { return KernelKind::products; },
                        [](const AttentionContext&) { return KernelKind::products; },
                        [pass](const FlashAttention&) {
                          return pass == Pass::forward ? KernelKind::attention_forward
                                                       : KernelKind::attention_backward;
                        },
                        [](const Softmax&) { return KernelKind::loss; },
                        [](const CrossEntropy&) { return KernelKind::loss; },
                        [](const Embedding&) { return KernelKind::indexing; },
                        [](const PositionEmbedding&) { return KernelKind::indexing; },
                        [](const Routing&) { return KernelKind::indexing; },
                        [](const Permute&) { return KernelKind::indexing; },
                        [](const auto&) { return KernelKind::elementwise; },
                    },
                    op);
}

std::optional<KernelTime> kernels_of(const Op& op, Pass pass, const KernelSet& set, double element,
                                     const DeviceSpec& device) {
  if (pass == Pass::weight_gradient) return std::nullopt;
  const auto of = elements_of(op);
  if (!of) return std::nullopt;
  auto kernels =
      kernel_time(set, of->op, pass == Pass::forward, of->count, of->source, element, device);
  // A head's norm has a block a row: forward 64 elements take as long as 128, backward five sixths,
  // on an H100 and on an H200 (configs/kernels/pytorch-operators.csv, qk norm).
  constexpr double shortest_row = 128, forward = 1, backward = 0.66;
  constexpr std::int64_t longest_row = 4096;
  const auto* norm = std::get_if<Norm>(&op);
  if (kernels && norm != nullptr && norm->cols > longest_row)
    kernels->time *= set.find(of->op, pass == Pass::forward)->long_rows;
  if (kernels && of->op == KernelOp::head_norm && static_cast<double>(norm->cols) < shortest_row) {
    const double more = shortest_row / static_cast<double>(norm->cols) - 1;
    kernels->time *= 1 + more * (pass == Pass::forward ? forward : backward);
  }
  return kernels;
}

int joined_after_norm(Site site) {
  switch (site) {
    case Site::qkv: return 3;
    case Site::mlp_gate_and_up: return 2;
    case Site::q:
    case Site::kv:
    case Site::q_down:
    case Site::kv_down:
    case Site::cross_attention_q:
    case Site::mlp_up:
    case Site::router:
    case Site::logits: return 1;
    default: return 0;
  }
}

std::optional<KernelTime> kernels_around(const Op& op, Pass pass, const KernelSet& set,
                                         double element, const DeviceSpec& device, int joined) {
  if (const auto* o = std::get_if<FlashAttention>(&op)) {
    if (o->kv_heads >= o->heads || pass == Pass::weight_gradient) return std::nullopt;
    const double copies = area(o->sequences * o->key_count(), o->heads) *
                          static_cast<double>(o->head_dim + o->value_dim());
    return kernel_time(set, KernelOp::repeat_kv, pass == Pass::forward, copies, 0, element, device);
  }
  const auto* o = std::get_if<Linear>(&op);
  if (o == nullptr || pass == Pass::input_gradient) return std::nullopt;
  const bool after_norm = joined > 0 && set.find(KernelOp::after_norm, true) != nullptr;
  return kernel_time(set, after_norm ? KernelOp::after_norm : KernelOp::linear,
                     pass == Pass::forward, area(o->m, o->k) * std::max(1, joined),
                     area(o->n, o->k), element, device);
}

}  // namespace costmodel
