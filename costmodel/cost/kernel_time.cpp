#include "costmodel/cost/kernel_time.hpp"

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
  return o.kind == Normalization::layernorm ? KernelOp::layernorm : KernelOp::rmsnorm;
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
                            area(o.rows, o.cols) * static_cast<double>(o.copies)};
          },
          [](const AdapterSum& o) -> Found {
            return Elements{KernelOp::adapter, area(o.rows, o.cols), area(o.rows, o.inner)};
          },
          [](const auto&) -> Found { return {}; },
      },
      op);
}

}  // namespace

std::optional<KernelTime> kernel_time(const KernelSet& set, KernelOp op, bool forward,
                                      double elements, double source, double element,
                                      const DeviceSpec& device) {
  const KernelPass* pass = set.find(op, forward);
  if (pass == nullptr) return std::nullopt;
  const Bytes moved(pass->bytes(elements, source, element));
  const BytesPerSecond reached(device.memory_bandwidth.value * pass->rate);
  const BytesPerSecond best(device.memory_bandwidth.value * device.memory_efficiency);
  return KernelTime{moved / reached + device.memory_half * pass->kernels / best, moved,
                    pass->kernels};
}

std::optional<KernelTime> kernels_of(const Op& op, Pass pass, const KernelSet& set, double element,
                                     const DeviceSpec& device) {
  if (pass == Pass::weight_gradient) return std::nullopt;
  const auto of = elements_of(op);
  if (!of) return std::nullopt;
  return kernel_time(set, of->op, pass == Pass::forward, of->count, of->source, element, device);
}

std::optional<KernelTime> kernels_around(const Op& op, Pass pass, const KernelSet& set,
                                         double element, const DeviceSpec& device) {
  if (const auto* o = std::get_if<FlashAttention>(&op)) {
    if (o->kv_heads >= o->heads || pass == Pass::weight_gradient) return std::nullopt;
    const double copies = area(o->sequences * o->key_count(), o->heads) *
                          static_cast<double>(o->head_dim + o->value_dim());
    return kernel_time(set, KernelOp::repeat_kv, pass == Pass::forward, copies, 0, element, device);
  }
  const auto* o = std::get_if<Linear>(&op);
  if (o == nullptr || pass == Pass::input_gradient) return std::nullopt;
  return kernel_time(set, KernelOp::linear, pass == Pass::forward, area(o->m, o->k),
                     area(o->n, o->k), element, device);
}

}  // namespace costmodel
