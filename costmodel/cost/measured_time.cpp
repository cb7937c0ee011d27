#include "costmodel/cost/measured_time.hpp"

namespace costmodel {

namespace {

MeasuredOp residual_op(const BiasDropoutAdd& o) {
  if (o.dropout) return o.bias ? MeasuredOp::residual_with_both : MeasuredOp::residual_with_dropout;
  return o.bias ? MeasuredOp::residual_with_bias : MeasuredOp::residual;
}

MeasuredOp norm_op(const Norm& o) {
  if (o.gains > 1) return MeasuredOp::head_norm;
  return o.kind == Normalization::rmsnorm ? MeasuredOp::rmsnorm : MeasuredOp::layernorm;
}

// No table covers blocks of a ring, cross-attention, a different value size, a window, packed
// samples, or attention without causal mask.
bool is_plain(const FlashAttention& o) {
  return o.causal_skip && o.blocks == 1 && o.key_count() == o.s && o.value_dim() == o.head_dim &&
         o.attended == 0 && window_of(o.window, o.key_count()) == o.key_count();
}

bool is_plain(const AttentionScores& o) { return o.key_count() == o.s; }
bool is_plain(const AttentionContext& o) { return o.key_count() == o.s; }

std::optional<Seconds> time_by(const RateTable* table, const MeasuredWork& work) {
  if (table == nullptr) return std::nullopt;
  if (table->shapes.empty()) return Seconds(work.amount / rate_at(*table, work.point));
  const auto rate = rate_of(*table, work.sizes());
  return rate ? std::optional(Seconds(work.amount / *rate)) : std::nullopt;
}

template <class Attention>
MeasuredWork attended(const Attention& o, Pass pass, std::array<double, 2> heads) {
  return {{static_cast<double>(o.s), static_cast<double>(o.head_dim)},
          work_of(o, pass, 4).executed.value,
          heads};
}

MeasuredWork streamed(double rows, double cols, Precision precision) {
  const double bytes = rows * cols * storage_bytes(precision);
  return {{bytes}, bytes, {rows}};
}

}  // namespace

// A product's rate is that of its precision alone. All other operators compute in float on numbers
// as they are stored, so a table of another precision that is stored alike serves as well.
const RateTable* table_of(MeasuredOp op, Pass pass, const DeviceSpec& device, Precision precision) {
  const RateTable* alike = nullptr;
  for (const RateTable& t : device.measured) {
    if (t.pass != pass || t.op != op) continue;
    if (t.precision == precision) return &t;
    if (storage_bytes(t.precision) == storage_bytes(precision)) alike = &t;
  }
  return op == MeasuredOp::linear ? nullptr : alike;
}

std::optional<MeasuredOp> measured_op(const Op& op) {
  using Measured = std::optional<MeasuredOp>;
  const auto plain = [](const auto& o, MeasuredOp measured) {
    return is_plain(o) ? Measured(measured) : std::nullopt;
  };
  return std::visit(
      Visitor{
          [](const Linear&) -> Measured { return MeasuredOp::linear; },
          [](const Norm& o) -> Measured { return norm_op(o); },
          [](const Activation& o) -> Measured {
            return o.gated ? MeasuredOp::gated_activation : MeasuredOp::activation;
          },
          [](const BiasDropoutAdd& o) -> Measured { return residual_op(o); },
          [&](const FlashAttention& o) { return plain(o, MeasuredOp::flash_attention); },
          [&](const AttentionScores& o) { return plain(o, MeasuredOp::attention_scores); },
          [&](const AttentionContext& o) { return plain(o, MeasuredOp::attention_context); },
          [](const Softmax&) -> Measured { return MeasuredOp::softmax; },
          [](const Dropout&) -> Measured { return MeasuredOp::dropout; },
          [](const Rotary&) -> Measured { return MeasuredOp::rotary; },
          [](const Embedding&) -> Measured { return MeasuredOp::embedding; },
          [](const PositionEmbedding&) -> Measured { return MeasuredOp::position_embedding; },
          [](const CrossEntropy&) -> Measured { return MeasuredOp::cross_entropy; },
          [](const Convolution&) -> Measured { return {}; },
          [](const Scan&) -> Measured { return {}; },
          [](const GroupedLinear&) -> Measured { return {}; },
          [](const Routing&) -> Measured { return {}; },
          [](const Permute&) -> Measured { return {}; },
          [](const Dequantise&) -> Measured { return {}; },
          [](const AdapterSum&) -> Measured { return {}; },
          [](const UnfusedPasses&) -> Measured { return {}; },
          [](const Collective&) -> Measured { return {}; },
      },
      op);
}

std::vector<double> MeasuredWork::sizes() const {
  std::vector<double> all = point;
  for (const double size : more)
    if (size > 0) all.push_back(size);
  return all;
}

std::string_view measured_name(const Op& op) {
  const auto measured = measured_op(op);
  return measured ? name_of(*measured) : "";
}

MeasuredWork measured_work(const Op& op, Pass pass, Precision precision) {
  const auto area = [&](const auto& o) {
    return streamed(static_cast<double>(o.rows), static_cast<double>(o.cols), precision);
  };
  return std::visit(Visitor{
                        [](const Linear& o) -> MeasuredWork {
                          const auto m = static_cast<double>(o.m), n = static_cast<double>(o.n),
                                     k = static_cast<double>(o.k);
                          return {{m, n, k}, 2 * m * n * k, {}};
                        },
                        [&](const FlashAttention& o) {
                          return attended(o, pass,
                                          {static_cast<double>(o.sequences * o.heads),
                                           static_cast<double>(o.sequences * o.kv_heads)});
                        },
                        [&](const AttentionScores& o) {
                          return attended(o, pass, {static_cast<double>(o.batch)});
                        },
                        [&](const AttentionContext& o) {
                          return attended(o, pass, {static_cast<double>(o.batch)});
                        },
                        [&](const Softmax& o) { return area(o); },
                        [&](const Dropout& o) { return area(o); },
                        [&](const Norm& o) { return area(o); },
                        [&](const Activation& o) { return area(o); },
                        [&](const BiasDropoutAdd& o) { return area(o); },
                        [&](const Rotary& o) { return area(o); },
                        [&](const Embedding& o) { return area(o); },
                        [&](const PositionEmbedding& o) { return area(o); },
                        [&](const CrossEntropy& o) { return area(o); },
                        [](const auto&) -> MeasuredWork { return {}; },
                    },
                    op);
}

Seconds measured_bias(const Op& op, Pass pass, const DeviceSpec& device, Precision precision) {
  const auto* o = std::get_if<Linear>(&op);
  if (o == nullptr || !o->bias || o->bias_in_residual) return {};
  const auto work = streamed(static_cast<double>(o->m), static_cast<double>(o->n), precision);
  return time_by(table_of(MeasuredOp::bias, pass, device, precision), work).value_or(Seconds(0));
}

std::optional<Seconds> measured_time(const Op& op, Pass pass, const DeviceSpec& device,
                                     Precision precision) {
  if (device.measured.empty()) return std::nullopt;
  const auto measured = measured_op(op);
  if (!measured) return std::nullopt;
  const auto* product = std::get_if<Linear>(&op);
  if (product != nullptr) precision = precision_of(*product, precision);
  const auto* table = table_of(*measured, pass, device, precision);
  if (table == nullptr) return std::nullopt;
  const auto time = time_by(table, measured_work(op, pass, precision));
  return time ? std::optional(*time + measured_bias(op, pass, device, precision)) : std::nullopt;
}

std::optional<Seconds> measured_optimizer(Bytes parameters, const DeviceSpec& device) {
  const RateTable* table = table_of(MeasuredOp::optimizer, Pass::forward, device, Precision::fp32);
  if (table == nullptr) return std::nullopt;
  return time_by(table, {{parameters.value}, parameters.value, {}});
}

}  // namespace costmodel
