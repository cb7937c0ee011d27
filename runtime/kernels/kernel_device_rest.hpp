// Every operator of a KernelDevice but attention.
#pragma once

#include "runtime/kernels/kernel_device_declared.hpp"

namespace runtime::kernels {

template <class Executor>
void KernelDevice<Executor>::forward(const OpCall& call, const costmodel::Linear& op) {
  const float* w = checked(call.matrix, op.k * op.n, "the weight");
  const float* bias = call.bias.empty() ? nullptr : checked(call.bias, op.n, "bias");
  product({.m = op.m, .n = op.n, .k = op.k, .transpose_b = call.table_layout},
          checked(call.inputs[0], op.m * op.k, "x"), w, bias,
          checked(call.output, op.m * op.n, "y"));
}

template <class Executor>
void KernelDevice<Executor>::gradient(const OpCall& call, const costmodel::Linear& op) {
  product({.m = op.m, .n = op.k, .k = op.n, .transpose_b = !call.table_layout},
          checked(call.output_gradient, op.m * op.n, "dy"),
          checked(call.matrix, op.k * op.n, "the weight"), nullptr,
          checked(call.input_gradients[0], op.m * op.k, "dx"));
}

template <class Executor>
void KernelDevice<Executor>::weight_gradient(const OpCall& call) {
  const auto& op = std::get<costmodel::Linear>(call.node.op);
  const float* dy = checked(call.output_gradient, op.m * op.n, "dy");
  const float* x = checked(call.inputs[0], op.m * op.k, "x");
  float* dw = checked(call.matrix_gradient, op.k * op.n, "the weight's gradient");
  if (!call.bias_gradient.empty()) {
    run_.columns(op.m, op.n,
                 BiasGradient<float>{op.n, dy, checked(call.bias_gradient, op.n, "dbias")});
  }
  if (call.table_layout) {
    product({.m = op.n, .n = op.k, .k = op.m, .transpose_a = true, .beta = 1}, dy, x, nullptr, dw);
  } else {
    product({.m = op.k, .n = op.n, .k = op.m, .transpose_a = true, .beta = 1}, x, dy, nullptr, dw);
  }
}

template <class Executor>
void KernelDevice<Executor>::forward(const OpCall& call, const costmodel::Dropout& op) {
  const float* x = checked(call.inputs[0], op.rows * op.cols, "x");
  float* y = checked(call.output, op.rows * op.cols, "y");
  std::uint8_t* mask = checked(call.saved[0].mask(), op.rows * op.cols, "mask");
  const double p = call.place.dropout;
  const auto drop = [&](const costmodel::Dropout& o, const cpu::DropoutKey& key, std::size_t at) {
    run_.elements(
        quads(o.rows * o.cols),
        DropoutForward<float>{o.rows, o.cols, dropout_draw(key, p), x + at, y + at, mask + at});
  };
  if (call.node.region != costmodel::Region::attention_core)
    return drop(op, token_key(call.place, DropoutSite::embedding, op.cols), 0);
  for_each_sequence(call.place, op,
                    [&](const auto& part, const auto& key, auto at, auto) { drop(part, key, at); });
}

template <class Executor>
void KernelDevice<Executor>::gradient(const OpCall& call, const costmodel::Dropout& op) {
  const Index n = op.rows * op.cols;
  run_.elements(n, DropoutGradient<float>{dropout_draw({}, call.place.dropout).scale,
                                          checked(call.output_gradient, n, "dy"),
                                          checked(call.saved[0].mask(), n, "mask"),
                                          checked(call.input_gradients[0], n, "dx")});
}

template <class Executor>
void KernelDevice<Executor>::forward(const OpCall& call, const costmodel::BiasDropoutAdd& op) {
  const Index n = op.rows * op.cols;
  const float* x = checked(call.inputs[0], n, "x");
  const float* skip = checked(call.inputs[1], n, "skip");
  const float* bias = call.bias.empty() ? nullptr : checked(call.bias, op.cols, "bias");
  float* y = checked(call.output, n, "y");
  std::uint8_t* mask = checked(call.saved[0].mask(), op.dropout ? n : 0, "mask");
  if (!op.dropout) return run_.elements(n, BiasAddForward<float>{op.cols, x, bias, skip, y});
  const auto draw =
      dropout_draw(token_key(call.place, residual_site(call), op.cols), call.place.dropout);
  run_.elements(quads(n),
                BiasDropoutAddForward<float>{op.rows, op.cols, draw, x, bias, skip, y, mask});
}

template <class Executor>
void KernelDevice<Executor>::gradient(const OpCall& call, const costmodel::BiasDropoutAdd& op) {
  const Index n = op.rows * op.cols;
  const float* dy = checked(call.output_gradient, n, "dy");
  const std::uint8_t* mask = checked(call.saved[0].mask(), op.dropout ? n : 0, "mask");
  const float scale = dropout_draw({}, call.place.dropout).scale;
  if (!call.bias_gradient.empty()) {
    float* dbias = checked(call.bias_gradient, op.cols, "dbias");
    if (op.dropout)
      run_.columns(op.rows, op.cols, MaskedBiasGradient<float>{op.cols, scale, dy, mask, dbias});
    else
      run_.columns(op.rows, op.cols, BiasGradient<float>{op.cols, dy, dbias});
  }
  float* dx = checked(call.input_gradients[0], n, "dx");
  if (op.dropout)
    run_.elements(n, DropoutGradient<float>{scale, dy, mask, dx});
  else
    memory().copy(dy, dx, call.output_gradient.bytes);
  memory().copy(dy, checked(call.input_gradients[1], n, "dskip"), call.output_gradient.bytes);
}

namespace detail {

inline bool is_centred(const costmodel::Norm& op) {
  return op.kind == costmodel::Normalization::layernorm;
}

// A vector that LayerNorm has and RMSNorm has not: null for the latter.
template <class T>
T* shift_of(const costmodel::Norm& op, std::span<T> shift) {
  T* data = checked(shift, is_centred(op) ? op.gains * op.cols : 0, "shift");
  return shift.empty() ? nullptr : data;
}

inline QkRows qk_rows(const costmodel::Norm& op, const Place& place) {
  const QkRows rows{layout_of(place)};
  if (op.cols != rows.layout.head_dim || op.rows != rows.rows())
    throw std::invalid_argument("the norm of queries and keys has another layout");
  return rows;
}

}  // namespace detail

template <class Executor>
void KernelDevice<Executor>::forward(const OpCall& call, const costmodel::Norm& op) {
  const bool centred = detail::is_centred(op);
  const float* gain = checked(call.matrix, op.gains * op.cols, "gain");
  const float* shift = detail::shift_of(op, call.bias);
  const auto epsilon = static_cast<float>(cpu::norm_epsilon);
  if (is_qk_norm(op)) {
    const QkRows rows = detail::qk_rows(op, call.place);
    const cpu::HeadLayout& l = rows.layout;
    const float* x = checked(call.inputs[0], l.tokens() * l.columns(), "qkv");
    float* y = checked(call.output, l.tokens() * l.columns(), "y");
    run_.rows(op.rows, op.cols, QkNormForward<float>{centred, rows, epsilon, x, gain, shift, y});
    if (x != y) run_.elements(l.tokens() * l.kv_heads * l.head_dim, CopyValues<float>{l, x, y});
    return;
  }
  const Index n = op.rows * op.cols;
  run_.rows(op.rows, op.cols,
            NormForward<float>{centred, op.cols, epsilon, checked(call.inputs[0], n, "x"), gain,
                               shift, checked(call.output, n, "y"),
                               checked(call.saved[1], op.rows * (centred ? 2 : 1), "statistics")});
}

template <class Executor>
void KernelDevice<Executor>::qk_norm_gradient(const OpCall& call, const costmodel::Norm& op) {
  const bool centred = detail::is_centred(op);
  const QkRows rows = detail::qk_rows(op, call.place);
  const cpu::HeadLayout& l = rows.layout;
  const Index n = l.tokens() * l.columns();
  const float* x = checked(call.inputs[0], n, "qkv");
  const float* dy = checked(call.output_gradient, n, "dy");
  float* dx = checked(call.input_gradients[0], n, "dqkv");
  float* statistics = run_.scratch(2 * op.rows);
  if (dx == dy)  // the vectors' gradients read it afterwards
    throw std::invalid_argument("the norm of queries and keys wants dqkv apart");
  run_.rows(op.rows, op.cols,
            QkNormGradient<float>{centred, rows, static_cast<float>(cpu::norm_epsilon), x,
                                  checked(call.matrix, 2 * op.cols, "gain"), dy, dx, statistics});
  run_.elements(l.tokens() * l.kv_heads * l.head_dim, CopyValues<float>{l, dy, dx});
  float* dgain = checked(call.matrix_gradient, 2 * op.cols, "dgain");
  float* dshift = detail::shift_of(op, call.bias_gradient);
  for (const bool queries : {true, false}) {
    const Index own = queries ? 0 : op.cols;
    run_.columns(l.tokens() * (queries ? l.heads : l.kv_heads), op.cols,
                 QkVectorGradients<float>{rows, queries, x, statistics, dy, dgain + own,
                                          dshift == nullptr ? nullptr : dshift + own});
  }
}

template <class Executor>
void KernelDevice<Executor>::gradient(const OpCall& call, const costmodel::Norm& op) {
  if (is_qk_norm(op)) return qk_norm_gradient(call, op);
  const bool centred = detail::is_centred(op);
  const Index n = op.rows * op.cols;
  const float* x = checked(call.inputs[0], n, "x");
  const float* dy = checked(call.output_gradient, n, "dy");
  const float* statistics = checked(call.saved[1], op.rows * (centred ? 2 : 1), "statistics");
  run_.columns(op.rows, op.cols,
               NormVectorGradients<float>{centred, op.cols, x, statistics, dy,
                                          checked(call.matrix_gradient, op.cols, "dgain"),
                                          detail::shift_of(op, call.bias_gradient)});
  run_.rows(op.rows, op.cols,
            NormInputGradient<float>{centred, call.accumulate[0], op.cols, x,
                                     checked(call.matrix, op.cols, "gain"), statistics, dy,
                                     checked(call.input_gradients[0], n, "dx")});
}

template <class Executor>
void KernelDevice<Executor>::forward(const OpCall& call, const costmodel::Activation& op) {
  const Index n = op.rows * op.cols;
  const float* x = checked(call.inputs[0], op.gated ? 2 * n : n, "x");
  float* y = checked(call.output, n, "y");
  if (op.gated)
    run_.elements(n, SwiGlu<float>{op.cols, x, y});
  else
    run_.elements(n, Gelu<float>{x, y});
}

template <class Executor>
void KernelDevice<Executor>::gradient(const OpCall& call, const costmodel::Activation& op) {
  const Index n = op.rows * op.cols;
  const float* x = checked(call.inputs[0], op.gated ? 2 * n : n, "x");
  const float* dy = checked(call.output_gradient, n, "dy");
  float* dx = checked(call.input_gradients[0], op.gated ? 2 * n : n, "dx");
  if (op.gated)
    run_.elements(n, SwiGluGradient<float>{op.cols, x, dy, dx});
  else
    run_.elements(n, GeluGradient<float>{x, dy, dx});
}

template <class Executor>
void KernelDevice<Executor>::turn(const OpCall& call, const costmodel::Rotary& op, float direction,
                                  const Tensor& from, const Tensor& to) {
  const cpu::HeadLayout l = layout_of(call.place);
  if (op.rows != l.tokens() || op.cols != (l.heads + l.kv_heads) * l.head_dim)
    throw std::invalid_argument("the rotary embedding has another layout");
  const auto [cosine, sine] = run_.rotary(l.s, l.head_dim);
  const Index n = l.tokens() * l.columns();
  const Turn<float> kernel{l, cosine, sine, direction, checked(from, n, "x"), checked(to, n, "y")};
  run_.elements(l.tokens() * kernel.per_token(), kernel);
}

template <class Executor>
void KernelDevice<Executor>::forward(const OpCall& call, const costmodel::Rotary& op) {
  turn(call, op, 1, call.inputs[0], call.output);
}

template <class Executor>
void KernelDevice<Executor>::gradient(const OpCall& call, const costmodel::Rotary& op) {
  turn(call, op, -1, call.output_gradient, call.input_gradients[0]);
}

template <class Executor>
void KernelDevice<Executor>::forward(const OpCall& call, const costmodel::Embedding& op) {
  const Index n = op.rows * op.cols;
  run_.elements(n, EmbeddingRows<float>{op.cols, op.vocab, call.place.first_token,
                                        checked(call.inputs[0].ids(), op.rows, "tokens"),
                                        checked(call.matrix, op.vocab * op.cols, "the table"),
                                        checked(call.output, n, "y")});
}

template <class Executor>
void KernelDevice<Executor>::gradient(const OpCall& call, const costmodel::Embedding& op) {
  const Index table = op.vocab * op.cols;
  run_.elements(table,
                EmbeddingGradient<float>{op.rows, op.cols, call.place.first_token,
                                         checked(call.inputs[0].ids(), op.rows, "tokens"),
                                         checked(call.output_gradient, op.rows * op.cols, "dy"),
                                         checked(call.matrix_gradient, table, "dtable")});
}

template <class Executor>
void KernelDevice<Executor>::forward(const OpCall& call, const costmodel::PositionEmbedding& op) {
  if (call.place.sequence > op.positions)
    throw std::invalid_argument("a sequence is longer than the table of positions");
  const Index n = op.rows * op.cols;
  run_.elements(
      n, AddPositions<float>{op.cols, positions_of(call.place), checked(call.inputs[0], n, "x"),
                             checked(call.matrix, op.positions * op.cols, "the table"),
                             checked(call.output, n, "y")});
}

template <class Executor>
void KernelDevice<Executor>::gradient(const OpCall& call, const costmodel::PositionEmbedding& op) {
  const Index n = op.rows * op.cols;
  const float* dy = checked(call.output_gradient, n, "dy");
  float* dtable = checked(call.matrix_gradient, op.positions * op.cols, "dtable");
  run_.elements(std::min(call.place.sequence, op.positions) * op.cols,
                PositionGradient<float>{op.rows, op.cols, positions_of(call.place), dy, dtable});
  memory().copy(dy, checked(call.input_gradients[0], n, "dx"), call.output_gradient.bytes);
}

template <class Executor>
void KernelDevice<Executor>::gradient(const OpCall& call, const costmodel::CrossEntropy& op) {
  const Index n = op.rows * op.cols;
  run_.elements(n, CrossEntropyGradient<float>{op.cols, call.place.first_token,
                                               checked(call.saved[1].ids(), op.rows, "targets"),
                                               static_cast<float>(call.place.loss_scale),
                                               checked(call.saved[0], n, "softmax"),
                                               checked(call.input_gradients[0], n, "dlogits")});
}

template <class Executor>
void KernelDevice<Executor>::logits_maximum(const OpCall& call) {
  const auto& op = std::get<costmodel::CrossEntropy>(call.node.op);
  run_.rows(op.rows, op.cols,
            LogitMaximum<float>{op.cols, real_columns(call.place, op),
                                checked(call.inputs[0], op.rows * op.cols, "logits"),
                                checked(logit_statistics(call).maximum, op.rows, "maximum")});
}

template <class Executor>
void KernelDevice<Executor>::logits_exponentials(const OpCall& call) {
  const auto& op = std::get<costmodel::CrossEntropy>(call.node.op);
  const LogitStatistics rows = logit_statistics(call);
  run_.rows(op.rows, op.cols,
            LogitExponentials<float>{op.cols, call.place.first_token,
                                     checked(call.inputs[0], op.rows * op.cols, "logits"),
                                     checked(rows.maximum, op.rows, "maximum"),
                                     checked(call.saved[1].ids(), op.rows, "targets"),
                                     checked(call.saved[0], op.rows * op.cols, "exponentials"),
                                     rows.sum.data(), rows.target.data()});
}

template <class Executor>
void KernelDevice<Executor>::logits_loss(const OpCall& call) {
  const auto& op = std::get<costmodel::CrossEntropy>(call.node.op);
  const LogitStatistics rows = logit_statistics(call);
  run_.rows(op.rows, op.cols,
            LogitLoss<float>{op.cols, checked(rows.sum, op.rows, "sum"), rows.target.data(),
                             checked(call.saved[0], op.rows * op.cols, "exponentials"),
                             rows.target.data()});
}

}  // namespace runtime::kernels
