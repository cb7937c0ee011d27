#include "costmodel/cost/measured_time.hpp"

#include <algorithm>
#include <array>

namespace costmodel {

namespace {

std::string_view residual_name(const BiasDropoutAdd& o) {
  if (o.dropout) return o.bias ? "residual with both" : "residual with dropout";
  return o.bias ? "residual with bias" : "residual";
}

std::string_view norm_name(const Norm& o) {
  if (o.gains > 1) return "head norm";
  return o.kind == Normalization::layernorm ? "layernorm" : "rmsnorm";
}

// No table covers blocks of a ring, cross-attention, a different value size, or attention without
// causal mask.
bool is_plain(const FlashAttention& o) {
  return o.causal_skip && o.blocks == 1 && o.key_count() == o.s && o.value_dim() == o.head_dim;
}

bool is_plain(const AttentionScores& o) { return o.key_count() == o.s; }
bool is_plain(const AttentionContext& o) { return o.key_count() == o.s; }

// A product's rate is that of its precision alone. All other operators compute in float on numbers
// as they are stored, so a table of another precision that is stored alike serves as well.
const RateTable* table_of(std::string_view name, Pass pass, const DeviceSpec& device,
                          Precision precision) {
  const RateTable* alike = nullptr;
  for (const RateTable& t : device.measured) {
    if (t.pass != pass || t.op != name) continue;
    if (t.precision == precision) return &t;
    if (storage_bytes(t.precision) == storage_bytes(precision)) alike = &t;
  }
  return name == "linear" ? nullptr : alike;
}

std::optional<Seconds> time_by(const RateTable* table, const MeasuredWork& work) {
  if (table == nullptr) return std::nullopt;
  return Seconds(work.amount / rate_at(*table, work.point));
}

MeasuredWork streamed(double bytes) { return {{bytes}, bytes}; }

template <class Attention>
MeasuredWork attended(const Attention& o, Pass pass) {
  return {{static_cast<double>(o.s), static_cast<double>(o.head_dim)},
          work_of(o, pass, 4).executed.value};
}

// The time of a product's bias, unless the following residual adds it.
Seconds bias_time(const Op& op, Pass pass, const DeviceSpec& device, Precision precision) {
  const auto* o = std::get_if<Linear>(&op);
  if (o == nullptr || !o->bias || o->bias_in_residual) return {};
  const auto bytes = streamed(biased_bytes(*o, precision).value);
  return time_by(table_of("bias", pass, device, precision), bytes).value_or(Seconds(0));
}

}  // namespace

std::string_view measured_name(const Op& op) {
  return std::visit(Visitor{
                        [](const Norm& o) { return norm_name(o); },
                        [](const Activation& o) -> std::string_view {
                          return o.gated ? "gated activation" : "activation";
                        },
                        [](const BiasDropoutAdd& o) { return residual_name(o); },
                        [](const FlashAttention& o) -> std::string_view {
                          return is_plain(o) ? "flash attention" : "";
                        },
                        [](const AttentionScores& o) -> std::string_view {
                          return is_plain(o) ? "attention scores" : "";
                        },
                        [](const AttentionContext& o) -> std::string_view {
                          return is_plain(o) ? "attention context" : "";
                        },
                        [&](const auto&) {
                          const auto name = name_of(op);
                          const auto names = measured_names();
                          return std::find(names.begin(), names.end(), name) == names.end() ? ""
                                                                                            : name;
                        },
                    },
                    op);
}

MeasuredWork measured_work(const Op& op, Pass pass, Precision precision) {
  const double element = storage_bytes(precision);
  const auto area = [element](const auto& o) {
    return streamed(static_cast<double>(o.rows) * static_cast<double>(o.cols) * element);
  };
  return std::visit(Visitor{
                        [](const Linear& o) -> MeasuredWork {
                          const auto m = static_cast<double>(o.m), n = static_cast<double>(o.n),
                                     k = static_cast<double>(o.k);
                          return {{m, n, k}, 2 * m * n * k};
                        },
                        [&](const FlashAttention& o) { return attended(o, pass); },
                        [&](const AttentionScores& o) { return attended(o, pass); },
                        [&](const AttentionContext& o) { return attended(o, pass); },
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

Bytes biased_bytes(const Linear& op, Precision precision) {
  return Bytes(static_cast<double>(op.m) * static_cast<double>(op.n) * storage_bytes(precision));
}

std::optional<Seconds> measured_time(const Op& op, Pass pass, const DeviceSpec& device,
                                     Precision precision) {
  if (device.measured.empty()) return std::nullopt;
  const std::string_view name = measured_name(op);
  if (name.empty()) return std::nullopt;
  const auto* table = table_of(name, pass, device, precision);
  if (table == nullptr) return std::nullopt;
  return *time_by(table, measured_work(op, pass, precision)) +
         bias_time(op, pass, device, precision);
}

std::optional<Seconds> measured_optimizer(Bytes parameters, const DeviceSpec& device) {
  const RateTable* table = table_of("optimizer", Pass::forward, device, Precision::fp32);
  if (table == nullptr) return std::nullopt;
  return time_by(table, streamed(parameters.value));
}

}  // namespace costmodel
