// KernelDevice's attention: products of heads with a softmax between. An operator that keeps no
// scores uses flash_forward.hpp and flash_backward.hpp in 16 bits with head dimension 64 or 128;
// otherwise its scores are in scratch memory, one call's heads at a time.
#pragma once

#include "runtime/kernels/flash_backward.hpp"
#include "runtime/kernels/flash_forward.hpp"
#include "runtime/kernels/kernel_device_class.hpp"

namespace runtime::kernels {

namespace detail {

// Throws std::invalid_argument when the operator's shape is not the layout's.
template <class AttentionOp>
cpu::HeadLayout attention_layout(const AttentionOp& op, const Place& place) {
  const cpu::HeadLayout layout = layout_of(place);
  if (op.batch != layout.sequences * layout.heads || op.s != layout.s ||
      op.head_dim != layout.head_dim || layout.heads % layout.kv_heads != 0)
    throw std::invalid_argument("attention has another layout");
  return layout;
}

inline cpu::HeadLayout flash_layout(const costmodel::FlashAttention& op) {
  if (op.key_count() != op.s || op.value_dim() != op.head_dim || op.heads % op.kv_heads != 0)
    throw std::invalid_argument("flash attention has keys of other ranks, or other values");
  return {op.sequences, op.s, op.heads, op.kv_heads, op.head_dim};
}

inline float scale_of(const cpu::HeadLayout& layout) {
  return static_cast<float>(1 / std::sqrt(static_cast<double>(layout.head_dim)));
}

inline Index qkv_elements(const cpu::HeadLayout& layout) {
  return layout.tokens() * layout.columns();
}
inline Index context_elements(const cpu::HeadLayout& layout) {
  return layout.tokens() * layout.context_columns();
}

}  // namespace detail

template <class Executor, class T>
void KernelDevice<Executor, T>::forward(const OpCall& call, const costmodel::AttentionScores& op) {
  const auto l = detail::attention_layout(op, call.place);
  const T* qkv = checked(call.inputs[0], detail::qkv_elements(l), "qkv");
  T* scores = checked(call.output, op.batch * op.s * op.s, "scores");
  for_each_batch(l, [&](const HeadBatch& h) {
    product(product_with_keys(h, l.columns(), h.query_step(), h.score_step()), qkv + h.query(),
            qkv + h.key(), scores + h.scores());
  });
}

template <class Executor, class T>
void KernelDevice<Executor, T>::forward(const OpCall& call, const costmodel::AttentionContext& op) {
  const auto l = detail::attention_layout(op, call.place);
  const T* probabilities = checked(call.inputs[0], op.batch * op.s * op.s, "probabilities");
  const T* qkv = checked(call.inputs[1], detail::qkv_elements(l), "qkv");
  T* context = checked(call.output, detail::context_elements(l), "context");
  for_each_batch(l, [&](const HeadBatch& h) {
    const auto p = product_of_scores(h, {.score_step = h.score_step(),
                                         .row_b = l.columns(),
                                         .step_b = h.key_step(),
                                         .row_c = l.context_columns(),
                                         .step_c = h.query_step()});
    product(p, probabilities + h.scores(), qkv + h.value(), context + h.context());
  });
}

template <class Executor, class T>
void KernelDevice<Executor, T>::forward(const OpCall& call, const costmodel::Softmax& op) {
  const Index n = op.rows * op.cols;
  run_.rows(op.rows, op.cols,
            CausalSoftmax<T>{.cols = op.cols,
                             .scale = static_cast<float>(softmax_scale(call.place)),
                             .x = checked(call.inputs[0], n, "scores"),
                             .y = checked(call.output, n, "probabilities")});
}

template <class Executor, class T>
template <int D>
void KernelDevice<Executor, T>::forward_in_tiles(const OpCall& call, const cpu::HeadLayout& l) {
  const FlashShape shape{l, true, detail::scale_of(l)};
  run_.tiles(
      shape.tiles(), shape.heads(),
      FlashForward<D, T>{shape, checked(call.inputs[0], detail::qkv_elements(l), "qkv"),
                         checked(call.output, detail::context_elements(l), "out"),
                         checked(call.saved[1].floats(), l.tokens() * l.heads, "log-sum-exp")});
}

template <class Executor, class T>
template <int D>
void KernelDevice<Executor, T>::gradient_in_tiles(const OpCall& call, const cpu::HeadLayout& l) {
  const FlashShape shape{l, true, detail::scale_of(l)};
  const Index figures = l.tokens() * l.heads;
  const T* dout = checked(call.output_gradient, detail::context_elements(l), "dout");
  T* dqkv = checked(call.input_gradients[0], detail::qkv_elements(l), "dqkv");
  float* levels = run_.scratch(figures);
  run_.rows(
      figures, D,
      FlashLevels<T>{D, checked(call.saved[2], detail::context_elements(l), "out"), dout, levels});
  const FlashGradientInputs<T> in{shape, checked(call.saved[0], detail::qkv_elements(l), "qkv"),
                                  dout, checked(call.saved[1].floats(), figures, "log-sum-exp"),
                                  levels};
  run_.tiles(shape.tiles(), shape.heads(), FlashQueryGradient<D, T>{in, dqkv});
  run_.tiles(shape.tiles(), shape.kv_heads(), FlashKeyGradient<D, T>{in, dqkv});
}

template <class Executor, class T>
void KernelDevice<Executor, T>::forward(const OpCall& call, const Attend& op) {
  const auto l = detail::flash_layout(op);
  if constexpr (number_of<T> != Number::f32) {
    if (l.head_dim == 64) return forward_in_tiles<64>(call, l);
    if (l.head_dim == 128) return forward_in_tiles<128>(call, l);
  }
  const T* qkv = checked(call.inputs[0], detail::qkv_elements(l), "qkv");
  T* out = checked(call.output, detail::context_elements(l), "out");
  float* figures = checked(call.saved[1].floats(), l.tokens() * l.heads, "log-sum-exp");
  const Index square = l.s * l.s;
  T* scores = scratch(l.kv_heads * square);
  for_each_batch(l, [&](const HeadBatch& h) {
    product(product_with_keys(h, l.columns(), h.query_step(), square), qkv + h.query(),
            qkv + h.key(), scores);
    run_.rows(h.count() * l.s, l.s,
              CausalSoftmax<T>{l.s, detail::scale_of(l), scores, scores, figures + h.figures(),
                               RowPlaces{l.s, l.share(), l.heads}});
    const auto p = product_of_scores(h, {.score_step = square,
                                         .row_b = l.columns(),
                                         .step_b = h.key_step(),
                                         .row_c = l.context_columns(),
                                         .step_c = h.query_step()});
    product(p, scores, qkv + h.value(), out + h.context());
  });
}

template <class Executor, class T>
void KernelDevice<Executor, T>::add_score_gradients(const HeadBatch& h, const T* dscores,
                                                    Index score_step, const T* qkv, T* dqkv) {
  const Index row = h.layout.columns();
  ScoreProduct p{.add = true,
                 .score_step = score_step,
                 .row_b = row,
                 .step_b = h.key_step(),
                 .row_c = row,
                 .step_c = h.query_step()};
  product(product_of_scores(h, p), dscores, qkv + h.key(), dqkv + h.query());
  p.transposed = true;
  std::swap(p.step_b, p.step_c);
  product(product_of_scores(h, p), dscores, qkv + h.query(), dqkv + h.key());
}

template <class Executor, class T>
void KernelDevice<Executor, T>::add_value_gradient(const HeadBatch& h, const T* probabilities,
                                                   Index score_step, const T* dcontext, T* dqkv) {
  const auto p = product_of_scores(h, {.transposed = true,
                                       .add = true,
                                       .score_step = score_step,
                                       .row_b = h.layout.context_columns(),
                                       .step_b = h.query_step(),
                                       .row_c = h.layout.columns(),
                                       .step_c = h.key_step()});
  product(p, probabilities, dcontext + h.context(), dqkv + h.value());
}

// Accumulates into dqkv.
template <class Executor, class T>
void KernelDevice<Executor, T>::gradient(const OpCall& call, const costmodel::AttentionScores& op) {
  const auto l = detail::attention_layout(op, call.place);
  const T* qkv = checked(call.inputs[0], detail::qkv_elements(l), "qkv");
  const T* dscores = checked(call.output_gradient, op.batch * op.s * op.s, "dscores");
  T* dqkv = checked(call.input_gradients[0], detail::qkv_elements(l), "dqkv");
  for_each_batch(l, [&](const HeadBatch& h) {
    add_score_gradients(h, dscores + h.scores(), h.score_step(), qkv, dqkv);
  });
}

// Writes dprobabilities and dqkv: dV, and zeros for queries and keys.
template <class Executor, class T>
void KernelDevice<Executor, T>::gradient(const OpCall& call,
                                         const costmodel::AttentionContext& op) {
  const auto l = detail::attention_layout(op, call.place);
  const Index scores = op.batch * op.s * op.s;
  const T* probabilities = checked(call.inputs[0], scores, "probabilities");
  const T* qkv = checked(call.inputs[1], detail::qkv_elements(l), "qkv");
  const T* dcontext = checked(call.output_gradient, detail::context_elements(l), "dcontext");
  T* dprobabilities = checked(call.input_gradients[0], scores, "dprobabilities");
  T* dqkv = checked(call.input_gradients[1], detail::qkv_elements(l), "dqkv");
  memory().clear(dqkv, call.input_gradients[1].bytes);
  for_each_batch(l, [&](const HeadBatch& h) {
    product(product_with_keys(h, l.context_columns(), h.query_step(), h.score_step()),
            dcontext + h.context(), qkv + h.value(), dprobabilities + h.scores());
    add_value_gradient(h, probabilities + h.scores(), h.score_step(), dcontext, dqkv);
  });
}

template <class Executor, class T>
void KernelDevice<Executor, T>::gradient(const OpCall& call, const costmodel::Softmax& op) {
  const Index n = op.rows * op.cols;
  run_.rows(op.rows, op.cols,
            SoftmaxGradient<T>{.cols = op.cols,
                               .scale = static_cast<float>(softmax_scale(call.place)),
                               .p = checked(call.saved[0], n, "probabilities"),
                               .dp = checked(call.output_gradient, n, "dprobabilities"),
                               .ds = checked(call.input_gradients[0], n, "dscores")});
}

template <class Executor, class T>
void KernelDevice<Executor, T>::gradient(const OpCall& call, const Attend& op) {
  const auto l = detail::flash_layout(op);
  if constexpr (number_of<T> != Number::f32) {
    if (l.head_dim == 64) return gradient_in_tiles<64>(call, l);
    if (l.head_dim == 128) return gradient_in_tiles<128>(call, l);
  }
  const T* qkv = checked(call.saved[0], detail::qkv_elements(l), "qkv");
  const float* figures = checked(call.saved[1].floats(), l.tokens() * l.heads, "log-sum-exp");
  const T* dout = checked(call.output_gradient, detail::context_elements(l), "dout");
  T* dqkv = checked(call.input_gradients[0], detail::qkv_elements(l), "dqkv");
  memory().clear(dqkv, call.input_gradients[0].bytes);
  const Index square = l.s * l.s;
  const float scale = detail::scale_of(l);
  T* p = scratch(2 * l.kv_heads * square);
  T* dp = p + l.kv_heads * square;
  for_each_batch(l, [&](const HeadBatch& h) {
    const Index rows = h.count() * l.s;
    product(product_with_keys(h, l.columns(), h.query_step(), square), qkv + h.query(),
            qkv + h.key(), p);
    run_.rows(rows, l.s,
              CausalProbabilities<T>{l.s, scale, figures + h.figures(),
                                     RowPlaces{l.s, l.share(), l.heads}, p, p});
    product(product_with_keys(h, l.context_columns(), h.query_step(), square), dout + h.context(),
            qkv + h.value(), dp);
    add_value_gradient(h, p, square, dout, dqkv);
    run_.rows(rows, l.s, SoftmaxGradient<T>{l.s, scale, p, dp, dp});
    add_score_gradients(h, dp, square, qkv, dqkv);
  });
}

}  // namespace runtime::kernels
