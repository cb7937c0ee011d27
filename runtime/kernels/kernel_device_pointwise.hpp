// All operators of KernelDevice except products and attention.
#pragma once

#include "runtime/kernels/kernel_device_class.hpp"

namespace runtime::kernels {

template <class Executor, class T>
void KernelDevice<Executor, T>::forward(const OpCall& call, const costmodel::Dropout& op) {
  const T* x = checked(call.inputs[0], op.rows * op.cols, "x");
  T* y = checked(call.output, op.rows * op.cols, "y");
  std::uint8_t* mask = checked(call.saved[0].mask(), op.rows * op.cols, "mask");
  const double p = call.place.dropout;
  const auto drop = [&](const costmodel::Dropout& o, const cpu::DropoutKey& key, std::size_t at) {
    run_.elements(quads(o.rows * o.cols), DropoutForward<T>{o.rows, o.cols, dropout_draw(key, p),
                                                            x + at, y + at, mask + at});
  };
  if (call.node.region != costmodel::Region::attention_core)
    return drop(op, token_key(call.place, DropoutSite::embedding, op.cols), 0);
  for_each_sequence(call.place, op,
                    [&](const auto& part, const auto& key, auto at, auto) { drop(part, key, at); });
}

template <class Executor, class T>
void KernelDevice<Executor, T>::gradient(const OpCall& call, const costmodel::Dropout& op) {
  const Index n = op.rows * op.cols;
  run_.elements(n, DropoutGradient<T>{dropout_draw({}, call.place.dropout).scale,
                                      checked(call.output_gradient, n, "dy"),
                                      checked(call.saved[0].mask(), n, "mask"),
                                      checked(call.input_gradients[0], n, "dx")});
}

template <class Executor, class T>
void KernelDevice<Executor, T>::forward(const OpCall& call, const costmodel::BiasDropoutAdd& op) {
  const Index n = op.rows * op.cols;
  const T* x = checked(call.inputs[0], n, "x");
  const T* skip = checked(call.inputs[1], n, "skip");
  const T* bias = call.bias.empty() ? nullptr : checked(call.bias, op.cols, "bias");
  T* y = checked(call.output, n, "y");
  std::uint8_t* mask = checked(call.saved[0].mask(), op.dropout ? n : 0, "mask");
  if (!op.dropout) return run_.elements(n, BiasAddForward<T>{op.cols, x, bias, skip, y});
  const auto draw =
      dropout_draw(token_key(call.place, residual_site(call), op.cols), call.place.dropout);
  run_.elements(quads(n), BiasDropoutAddForward<T>{op.rows, op.cols, draw, x, bias, skip, y, mask});
}

template <class Executor, class T>
void KernelDevice<Executor, T>::gradient(const OpCall& call, const costmodel::BiasDropoutAdd& op) {
  const Index n = op.rows * op.cols;
  const T* dy = checked(call.output_gradient, n, "dy");
  const std::uint8_t* mask = checked(call.saved[0].mask(), op.dropout ? n : 0, "mask");
  const float scale = dropout_draw({}, call.place.dropout).scale;
  if (!call.bias_gradient.empty()) {
    float* dbias = checked(call.bias_gradient, op.cols, "dbias");
    if (op.dropout)
      run_.columns(op.rows, op.cols, MaskedBiasGradient<T>{op.cols, scale, dy, mask, dbias});
    else
      run_.columns(op.rows, op.cols, BiasGradient<T>{op.cols, dy, dbias});
  }
  T* dx = checked(call.input_gradients[0], n, "dx");
  if (op.dropout)
    run_.elements(n, DropoutGradient<T>{scale, dy, mask, dx});
  else
    memory().copy(dy, dx, call.output_gradient.bytes);
  memory().copy(dy, checked(call.input_gradients[1], n, "dskip"), call.output_gradient.bytes);
}

namespace detail {

inline bool is_centred(const costmodel::Norm& op) {
  return op.kind == costmodel::Normalization::layernorm;
}

// LayerNorm's shift; null for RMSNorm, which has none.
template <class Value>
Value* shift_of(const costmodel::Norm& op, std::span<Value> shift) {
  Value* data = checked(shift, is_centred(op) ? op.gains * op.cols : 0, "shift");
  return shift.empty() ? nullptr : data;
}

inline QkRows qk_rows(const costmodel::Norm& op, const Place& place) {
  const QkRows rows{layout_of(place)};
  if (op.cols != rows.layout.head_dim || op.rows != rows.rows())
    throw std::invalid_argument("the norm of queries and keys has another layout");
  return rows;
}

}  // namespace detail

template <class Executor, class T>
void KernelDevice<Executor, T>::forward(const OpCall& call, const costmodel::Norm& op) {
  const bool centred = detail::is_centred(op);
  const T* gain = checked(call.matrix, op.gains * op.cols, "gain");
  const T* shift = detail::shift_of(op, call.bias.template as<T>());
  const auto epsilon = static_cast<float>(cpu::norm_epsilon);
  if (is_qk_norm(op)) {
    const QkRows rows = detail::qk_rows(op, call.place);
    const cpu::HeadLayout& l = rows.layout;
    const T* x = checked(call.inputs[0], l.tokens() * l.columns(), "qkv");
    T* y = checked(call.output, l.tokens() * l.columns(), "y");
    run_.rows(op.rows, op.cols, QkNormForward<T>{centred, rows, epsilon, x, gain, shift, y});
    if (x != y) run_.elements(l.tokens() * l.kv_heads * l.head_dim, CopyValues<T>{l, x, y});
    return;
  }
  const Index n = op.rows * op.cols;
  run_.rows(
      op.rows, op.cols,
      NormForward<T>{centred, op.cols, epsilon, checked(call.inputs[0], n, "x"), gain, shift,
                     checked(call.output, n, "y"),
                     checked(call.saved[1].floats(), op.rows * (centred ? 2 : 1), "statistics")});
}

template <class Executor, class T>
void KernelDevice<Executor, T>::qk_norm_gradient(const OpCall& call, const costmodel::Norm& op) {
  const bool centred = detail::is_centred(op);
  const QkRows rows = detail::qk_rows(op, call.place);
  const cpu::HeadLayout& l = rows.layout;
  const Index n = l.tokens() * l.columns();
  const T* x = checked(call.inputs[0], n, "qkv");
  const T* dy = checked(call.output_gradient, n, "dy");
  T* dx = checked(call.input_gradients[0], n, "dqkv");
  float* statistics = run_.scratch(2 * op.rows);
  if (dx == dy)  // the vectors' gradients read it afterwards
    throw std::invalid_argument("the norm of queries and keys wants dqkv apart");
  run_.rows(op.rows, op.cols,
            QkNormGradient<T>{centred, rows, static_cast<float>(cpu::norm_epsilon), x,
                              checked(call.matrix, 2 * op.cols, "gain"), dy, dx, statistics});
  run_.elements(l.tokens() * l.kv_heads * l.head_dim, CopyValues<T>{l, dy, dx});
  float* dgain = checked(call.matrix_gradient, 2 * op.cols, "dgain");
  float* dshift = detail::shift_of(op, call.bias_gradient);
  for (const bool queries : {true, false}) {
    const Index own = queries ? 0 : op.cols;
    run_.columns(l.tokens() * (queries ? l.heads : l.kv_heads), op.cols,
                 QkVectorGradients<T>{rows, queries, x, statistics, dy, dgain + own,
                                      dshift == nullptr ? nullptr : dshift + own});
  }
}

template <class Executor, class T>
void KernelDevice<Executor, T>::gradient(const OpCall& call, const costmodel::Norm& op) {
  if (is_qk_norm(op)) return qk_norm_gradient(call, op);
  const bool centred = detail::is_centred(op);
  const Index n = op.rows * op.cols;
  const T* x = checked(call.inputs[0], n, "x");
  const T* dy = checked(call.output_gradient, n, "dy");
  const float* statistics =
      checked(call.saved[1].floats(), op.rows * (centred ? 2 : 1), "statistics");
  run_.columns(op.rows, op.cols,
               NormVectorGradients<T>{centred, op.cols, x, statistics, dy,
                                      checked(call.matrix_gradient, op.cols, "dgain"),
                                      detail::shift_of(op, call.bias_gradient)});
  run_.rows(op.rows, op.cols,
            NormInputGradient<T>{centred, call.accumulate[0], op.cols, x,
                                 checked(call.matrix, op.cols, "gain"), statistics, dy,
                                 checked(call.input_gradients[0], n, "dx")});
}

template <class Executor, class T>
void KernelDevice<Executor, T>::forward(const OpCall& call, const costmodel::Activation& op) {
  const Index n = op.rows * op.cols;
  const T* x = checked(call.inputs[0], op.gated ? 2 * n : n, "x");
  T* y = checked(call.output, n, "y");
  if (op.gated)
    run_.elements(n, SwiGlu<T>{op.cols, x, y});
  else
    run_.elements(n, Gelu<T>{x, y});
}

template <class Executor, class T>
void KernelDevice<Executor, T>::gradient(const OpCall& call, const costmodel::Activation& op) {
  const Index n = op.rows * op.cols;
  const T* x = checked(call.inputs[0], op.gated ? 2 * n : n, "x");
  const T* dy = checked(call.output_gradient, n, "dy");
  T* dx = checked(call.input_gradients[0], op.gated ? 2 * n : n, "dx");
  if (op.gated)
    run_.elements(n, SwiGluGradient<T>{op.cols, x, dy, dx});
  else
    run_.elements(n, GeluGradient<T>{x, dy, dx});
}

template <class Executor, class T>
void KernelDevice<Executor, T>::turn(const OpCall& call, const costmodel::Rotary& op,
                                     float direction, const Tensor& from, const Tensor& to) {
  const cpu::HeadLayout l = layout_of(call.place);
  if (op.rows != l.tokens() || op.cols != (l.heads + l.kv_heads) * l.head_dim)
    throw std::invalid_argument("the rotary embedding has another layout");
  const auto [cosine, sine] = run_.rotary(l.s, l.head_dim);
  const Index n = l.tokens() * l.columns();
  const Turn<T> kernel{l, cosine, sine, direction, checked(from, n, "x"), checked(to, n, "y")};
  run_.elements(l.tokens() * kernel.per_token(), kernel);
}

template <class Executor, class T>
void KernelDevice<Executor, T>::forward(const OpCall& call, const costmodel::Rotary& op) {
  turn(call, op, 1, call.inputs[0], call.output);
}

template <class Executor, class T>
void KernelDevice<Executor, T>::gradient(const OpCall& call, const costmodel::Rotary& op) {
  turn(call, op, -1, call.output_gradient, call.input_gradients[0]);
}

template <class Executor, class T>
void KernelDevice<Executor, T>::forward(const OpCall& call, const costmodel::Embedding& op) {
  const Index n = op.rows * op.cols;
  run_.elements(n, EmbeddingRows<T>{op.cols, op.vocab, call.place.first_token,
                                    checked(call.inputs[0].ids(), op.rows, "tokens"),
                                    checked(call.matrix, op.vocab * op.cols, "the table"),
                                    checked(call.output, n, "y")});
}

template <class Executor, class T>
void KernelDevice<Executor, T>::gradient(const OpCall& call, const costmodel::Embedding& op) {
  if (op.rows > most_linked_rows)
    throw std::invalid_argument(
        "a micro-batch has more tokens than the embedding's gradient counts");
  const std::int64_t* tokens = checked(call.inputs[0].ids(), op.rows, "tokens");
  const T* dy = checked(call.output_gradient, op.rows * op.cols, "dy");
  float* dtable = checked(call.matrix_gradient, op.vocab * op.cols, "dtable");
  auto* const links = reinterpret_cast<std::int32_t*>(run_.scratch(op.rows));
  run_.rows(op.rows, op.rows, TokenLinks{op.rows, tokens, links});
  run_.elements(op.rows * op.cols,
                EmbeddingGradient<T>{op.rows, op.cols, op.vocab, call.place.first_token, tokens,
                                     links, dy, dtable});
}

template <class Executor, class T>
void KernelDevice<Executor, T>::forward(const OpCall& call,
                                        const costmodel::PositionEmbedding& op) {
  if (call.place.sequence > op.positions)
    throw std::invalid_argument("a sequence is longer than the table of positions");
  const Index n = op.rows * op.cols;
  run_.elements(n,
                AddPositions<T>{op.cols, positions_of(call.place), checked(call.inputs[0], n, "x"),
                                checked(call.matrix, op.positions * op.cols, "the table"),
                                checked(call.output, n, "y")});
}

template <class Executor, class T>
void KernelDevice<Executor, T>::gradient(const OpCall& call,
                                         const costmodel::PositionEmbedding& op) {
  const Index n = op.rows * op.cols;
  const T* dy = checked(call.output_gradient, n, "dy");
  float* dtable = checked(call.matrix_gradient, op.positions * op.cols, "dtable");
  run_.elements(std::min(call.place.sequence, op.positions) * op.cols,
                PositionGradient<T>{op.rows, op.cols, positions_of(call.place), dy, dtable});
  memory().copy(dy, checked(call.input_gradients[0], n, "dx"), call.output_gradient.bytes);
}

template <class Executor, class T>
void KernelDevice<Executor, T>::gradient(const OpCall& call, const costmodel::CrossEntropy& op) {
  const Index n = op.rows * op.cols;
  const std::int64_t* targets = checked(call.saved[1].ids(), op.rows, "targets");
  in_its_format(call.saved[0], n, "softmax", [&](const auto* softmax) {
    in_its_format(call.input_gradients[0], n, "dlogits", [&](auto* dlogits) {
      run_.elements(
          n, CrossEntropyGradient{op.cols, call.place.first_token, targets,
                                  static_cast<float>(call.place.loss_scale), softmax, dlogits});
    });
  });
}

template <class Executor, class T>
void KernelDevice<Executor, T>::logits_maximum(const OpCall& call) {
  run_.doing(call.node.name());
  const auto& op = std::get<costmodel::CrossEntropy>(call.node.op);
  float* maximum = checked(logit_statistics(call).maximum, op.rows, "maximum");
  in_its_format(call.inputs[0], op.rows * op.cols, "logits", [&](auto* logits) {
    run_.rows(op.rows, op.cols,
              LogitMaximum{op.cols, real_columns(call.place, op), logits, maximum});
  });
}

template <class Executor, class T>
void KernelDevice<Executor, T>::logits_exponentials(const OpCall& call) {
  run_.doing(call.node.name());
  const auto& op = std::get<costmodel::CrossEntropy>(call.node.op);
  const LogitStatistics rows = logit_statistics(call);
  const Index n = op.rows * op.cols;
  const std::int64_t* targets = checked(call.saved[1].ids(), op.rows, "targets");
  const float* maximum = checked(rows.maximum, op.rows, "maximum");
  in_its_format(call.inputs[0], n, "logits", [&](const auto* logits) {
    in_its_format(call.saved[0], n, "exponentials", [&](auto* exponentials) {
      run_.rows(op.rows, op.cols,
                LogitExponentials{op.cols, call.place.first_token, logits, maximum, targets,
                                  exponentials, rows.sum.data(), rows.target.data()});
    });
  });
}

template <class Executor, class T>
void KernelDevice<Executor, T>::logits_loss(const OpCall& call) {
  run_.doing(call.node.name());
  const auto& op = std::get<costmodel::CrossEntropy>(call.node.op);
  const LogitStatistics rows = logit_statistics(call);
  const float* sum = checked(rows.sum, op.rows, "sum");
  in_its_format(call.saved[0], op.rows * op.cols, "exponentials", [&](auto* exponentials) {
    run_.rows(op.rows, op.cols,
              LogitLoss{op.cols, sum, rows.target.data(), exponentials, rows.target.data()});
  });
}

}  // namespace runtime::kernels
