#include "runtime/devices/cpu_device.hpp"

#include <algorithm>
#include <limits>

#include "costmodel/base/error.hpp"
#include "runtime/backend/op_call.hpp"
#include "runtime/cpu/activation.hpp"
#include "runtime/cpu/attention.hpp"
#include "runtime/cpu/cross_entropy.hpp"
#include "runtime/cpu/dropout.hpp"
#include "runtime/cpu/embedding.hpp"
#include "runtime/cpu/flash_attention.hpp"
#include "runtime/cpu/gemm.hpp"
#include "runtime/cpu/linear.hpp"
#include "runtime/cpu/norm.hpp"
#include "runtime/cpu/qk_norm.hpp"
#include "runtime/cpu/softmax.hpp"

namespace runtime {

namespace {

using namespace costmodel;

cpu::QkVectors<const float> qk_weights(const OpCall& call) {
  const auto gain = call.matrix.floats(), shift = call.bias.floats();
  const std::size_t n = gain.size() / 2, m = shift.size() / 2;
  return {gain.first(n), gain.last(n), shift.first(m), shift.last(m)};
}

cpu::QkVectors<float> qk_gradients(const OpCall& call) {
  const std::size_t n = call.matrix_gradient.size() / 2, m = call.bias_gradient.size() / 2;
  return {call.matrix_gradient.first(n), call.matrix_gradient.last(n), call.bias_gradient.first(m),
          call.bias_gradient.last(m)};
}

void dropout_forward(const OpCall& call, const Dropout& op) {
  const double p = call.place.dropout;
  if (call.node.region != Region::attention_core) {
    cpu::dropout_forward(op, call.inputs[0].floats(), p,
                         token_key(call.place, DropoutSite::embedding, op.cols),
                         call.output.floats(), call.saved[0].mask());
    return;
  }
  for_each_sequence(call.place, op, [&](const Dropout& part, const auto& key, auto at, auto n) {
    cpu::dropout_forward(part, call.inputs[0].floats().subspan(at, n), p, key,
                         call.output.floats().subspan(at, n), call.saved[0].mask().subspan(at, n));
  });
}

void norm_forward(const OpCall& call, const Norm& op) {
  if (is_qk_norm(op)) {
    cpu::qk_norm_forward(op, layout_of(call.place), call.inputs[0].floats(), qk_weights(call),
                         call.output.floats());
    return;
  }
  cpu::norm_forward(op, call.inputs[0].floats(), call.matrix.floats(), call.bias.floats(),
                    call.output.floats(), call.saved[1].floats());
}

void norm_gradient(const OpCall& call, const Norm& op) {
  if (is_qk_norm(op)) {
    const auto layout = layout_of(call.place);
    cpu::qk_norm_weight_gradient(op, layout, call.inputs[0].floats(), call.output_gradient.floats(),
                                 qk_gradients(call));
    cpu::qk_norm_input_gradient(op, layout, call.inputs[0].floats(), qk_weights(call),
                                call.output_gradient.floats(), call.input_gradients[0].floats());
    return;
  }
  cpu::norm_weight_gradient(op, call.inputs[0].floats(), call.saved[1].floats(),
                            call.output_gradient.floats(), call.matrix_gradient,
                            call.bias_gradient);
  cpu::norm_input_gradient(op, call.inputs[0].floats(), call.matrix.floats(),
                           call.saved[1].floats(), call.output_gradient.floats(),
                           call.input_gradients[0].floats(), call.accumulate[0]);
}

// [n, k] tables: y = x · Tᵀ, dx = dy · T, dT += dyᵀ · x.
void table_forward(const OpCall& call, const Linear& op) {
  cpu::gemm({.m = op.m, .n = op.n, .k = op.k, .transpose_b = true}, call.inputs[0].floats(),
            call.matrix.floats(), call.output.floats());
}

void table_input_gradient(const OpCall& call, const Linear& op) {
  cpu::gemm({.m = op.m, .n = op.k, .k = op.n}, call.output_gradient.floats(), call.matrix.floats(),
            call.input_gradients[0].floats());
}

void table_weight_gradient(const OpCall& call, const Linear& op) {
  cpu::gemm({.m = op.n, .n = op.k, .k = op.m, .transpose_a = true, .beta = 1},
            call.output_gradient.floats(), call.inputs[0].floats(), call.matrix_gradient);
}

void residual_gradient(const OpCall& call, const BiasDropoutAdd& op) {
  const auto dy = call.output_gradient.floats();
  const double p = call.place.dropout;
  if (!call.bias_gradient.empty()) {
    cpu::bias_dropout_add_weight_gradient(op, dy, call.saved[0].mask(), p, call.bias_gradient);
  }
  cpu::bias_dropout_add_input_gradient(op, dy, call.saved[0].mask(), p,
                                       call.input_gradients[0].floats());
  std::ranges::copy(dy, call.input_gradients[1].floats().begin());
}

void clear(const Tensor& tensor) {
  const auto values = tensor.floats();
  std::ranges::fill(values, 0.0F);
}

void copy(const Tensor& from, const Tensor& to) {
  const auto values = from.floats();
  std::ranges::copy(values, to.floats().begin());
}

[[noreturn]] void unsupported(const OpCall&) {
  SHARDPLAN_CHECK(!"an operator that the runtime does not take");
  throw InternalError("unreachable");
}

const CrossEntropy& cross_entropy_of(const OpCall& call) {
  return std::get<CrossEntropy>(call.node.op);
}

void mask_padding(const OpCall& call) {
  const CrossEntropy& op = cross_entropy_of(call);
  const std::int64_t real = real_columns(call.place, op);
  const auto logits = call.inputs[0].floats();
  for (std::int64_t row = 0; row < op.rows && real < op.cols; ++row) {
    const auto begin = logits.begin() + row * op.cols;
    std::fill(begin + real, begin + op.cols, std::numeric_limits<float>::lowest());
  }
}

}  // namespace

const cpu::RotaryTable<float>& CpuDevice::rotary(const Place& place) {
  const std::array key{place.sequence, place.head_dim, place.position};
  const auto found = rotary_.find(key);
  if (found != rotary_.end()) return found->second;
  return rotary_.try_emplace(key, place.sequence, place.head_dim, cpu::rotary_base, place.position)
      .first->second;
}

void CpuDevice::cached_attention(const OpCall& call, const cpu::CachedKeys& cache) {
  const cpu::HeadLayout layout = layout_of(call.place);
  const auto qkv = call.inputs[0].floats();
  cpu::append_to_cache(layout, cache, qkv);
  if (cache.before > 0) {
    cpu::cached_attention(layout, cache, qkv, call.output.floats());
  } else {
    forward(call);  // there is nothing before the call's own tokens
  }
}

void CpuDevice::forward(const OpCall& call) {
  const Place& place = call.place;
  const auto x = call.inputs[0].floats(), y = call.output.floats();
  std::visit(
      Visitor{
          [&](const Linear& o) {
            if (call.table_layout) return table_forward(call, o);
            cpu::linear_forward(o, x, call.matrix.floats(), call.bias.floats(), y);
          },
          [&](const AttentionScores& o) {
            cpu::attention_scores_forward(o, layout_of(place), x, y);
          },
          [&](const AttentionContext& o) {
            cpu::attention_context_forward(o, layout_of(place), x, call.inputs[1].floats(), y);
          },
          [&](const Softmax& o) { cpu::softmax_forward(o, softmax_scale(place), true, x, y); },
          [&](const FlashAttention& o) {
            cpu::flash_attention_forward(o, x, y, call.saved[1].floats());
          },
          [&](const Dropout& o) { dropout_forward(call, o); },
          [&](const Norm& o) { norm_forward(call, o); },
          [&](const Activation& o) { cpu::activation_forward(o, x, y); },
          [&](const BiasDropoutAdd& o) {
            cpu::bias_dropout_add_forward(
                o, x, call.bias.floats(), call.inputs[1].floats(), place.dropout,
                token_key(place, residual_site(call), o.cols), y, call.saved[0].mask());
          },
          [&](const Rotary& o) { cpu::rotary_forward(o, layout_of(place), rotary(place), x, y); },
          [&](const Embedding& o) {
            cpu::embedding_forward(o, call.inputs[0].ids(), place.first_token, call.matrix.floats(),
                                   y);
          },
          [&](const PositionEmbedding& o) {
            cpu::position_embedding_forward(o, positions_of(place), x, call.matrix.floats(), y);
          },
          [&](const auto&) { unsupported(call); },
      },
      call.node.op);
}

void CpuDevice::input_gradient(const OpCall& call) {
  const Place& place = call.place;
  const auto x = call.inputs[0].floats(), dy = call.output_gradient.floats(),
             dx = call.input_gradients[0].floats();
  std::visit(Visitor{
                 [&](const Linear& o) {
                   if (call.table_layout) return table_input_gradient(call, o);
                   cpu::linear_input_gradient(o, dy, call.matrix.floats(), dx);
                 },
                 [&](const AttentionScores& o) {
                   cpu::attention_scores_gradient(o, layout_of(place), x, dy, dx);
                 },
                 [&](const AttentionContext& o) {
                   clear(call.input_gradients[1]);
                   cpu::attention_context_gradient(o, layout_of(place), x, call.inputs[1].floats(),
                                                   dy, dx, call.input_gradients[1].floats());
                 },
                 [&](const Softmax& o) {
                   cpu::softmax_gradient(o, softmax_scale(place), call.saved[0].floats(), dy, dx);
                 },
                 [&](const FlashAttention& o) {
                   clear(call.input_gradients[0]);
                   cpu::flash_attention_gradient(o, call.saved[0].floats(), call.saved[2].floats(),
                                                 call.saved[1].floats(), dy, dx);
                 },
                 [&](const Dropout& o) {
                   cpu::dropout_gradient(o, dy, call.saved[0].mask(), place.dropout, dx);
                 },
                 [&](const Norm& o) { norm_gradient(call, o); },
                 [&](const Activation& o) { cpu::activation_input_gradient(o, x, dy, dx); },
                 [&](const BiasDropoutAdd& o) { residual_gradient(call, o); },
                 [&](const Rotary& o) {
                   cpu::rotary_gradient(o, layout_of(place), rotary(place), dy, dx);
                 },
                 [&](const Embedding& o) {
                   cpu::embedding_weight_gradient(o, call.inputs[0].ids(), place.first_token, dy,
                                                  call.matrix_gradient);
                 },
                 [&](const PositionEmbedding& o) {
                   cpu::position_embedding_weight_gradient(o, positions_of(place), dy,
                                                           call.matrix_gradient);
                   copy(call.output_gradient, call.input_gradients[0]);
                 },
                 [&](const CrossEntropy& o) {
                   const Tensor& softmax = call.saved[0];
                   cpu::cross_entropy_gradient(o, softmax.floats(), call.saved[1].ids(),
                                               place.first_token, place.loss_scale, dx);
                 },
                 [&](const auto&) { unsupported(call); },
             },
             call.node.op);
}

void CpuDevice::weight_gradient(const OpCall& call) {
  const auto& op = std::get<Linear>(call.node.op);
  const auto dy = call.output_gradient.floats();
  if (!call.bias_gradient.empty()) cpu::bias_gradient(op.m, op.n, dy, call.bias_gradient);
  if (call.table_layout) return table_weight_gradient(call, op);
  cpu::linear_weight_gradient(op, call.inputs[0].floats(), dy, call.matrix_gradient);
}

void CpuDevice::logits_maximum(const OpCall& call) {
  mask_padding(call);
  cpu::cross_entropy_row_maximum(cross_entropy_of(call), call.inputs[0].floats(),
                                 logit_statistics(call).maximum);
}

void CpuDevice::logits_exponentials(const OpCall& call) {
  const LogitStatistics rows = logit_statistics(call);
  cpu::cross_entropy_exponentials(cross_entropy_of(call), call.inputs[0].floats(), rows.maximum,
                                  call.saved[1].ids(), call.place.first_token,
                                  call.saved[0].floats(), rows.sum, rows.target);
}

void CpuDevice::logits_loss(const OpCall& call) {
  const LogitStatistics rows = logit_statistics(call);
  cpu::cross_entropy_finish(cross_entropy_of(call), rows.sum, rows.target, call.saved[0].floats(),
                            rows.target);
}

}  // namespace runtime
