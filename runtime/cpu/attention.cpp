#include "runtime/cpu/attention.hpp"

#include <stdexcept>

#include "runtime/cpu/gemm.hpp"

namespace runtime::cpu {

using namespace costmodel;

namespace {

// The offsets of one head of one sequence in the tensors of attention.
struct HeadPlace {
  std::size_t query, key, value;  // in qkv
  std::size_t scores;             // in [sequences, heads, s, s]
  std::size_t context;            // in [tokens, heads * head_dim]
};

template <class AttentionOp>
void expect_layout(const AttentionOp& op, const HeadLayout& layout, std::size_t qkv,
                   std::size_t scores) {
  if (op.batch != layout.sequences * layout.heads || op.s != layout.s ||
      op.head_dim != layout.head_dim || layout.heads % layout.kv_heads != 0)
    throw std::invalid_argument("attention has another layout");
  expect_size(qkv, layout.tokens() * layout.columns(), "qkv");
  expect_size(scores, op.batch * op.s * op.s, "scores");
}

template <class Visit>
void for_each_head(const HeadLayout& layout, Visit visit) {
  const auto offset = [](std::int64_t elements) { return static_cast<std::size_t>(elements); };
  for (std::int64_t sequence = 0; sequence < layout.sequences; ++sequence) {
    for (std::int64_t head = 0; head < layout.heads; ++head) {
      const std::int64_t kv = head / layout.share();
      visit(HeadPlace{
          offset(layout.query(sequence, head)), offset(layout.key(sequence, kv)),
          offset(layout.value(sequence, kv)),
          offset((sequence * layout.heads + head) * layout.s * layout.s),
          offset(sequence * layout.s * layout.context_columns() + head * layout.head_dim)});
    }
  }
}

}  // namespace

template <class T>
void attention_scores_forward(const AttentionScores& op, const HeadLayout& layout, In<T> qkv,
                              Out<T> scores) {
  expect_layout(op, layout, qkv.size(), scores.size());
  const std::int64_t row = layout.columns();
  const Gemm product{
      .m = op.s, .n = op.s, .k = op.head_dim, .transpose_b = true, .lda = row, .ldb = row};
  for_each_head(layout, [&](const HeadPlace& at) {
    gemm<T>(product, qkv.subspan(at.query), qkv.subspan(at.key), scores.subspan(at.scores));
  });
}

template <class T>
void attention_scores_gradient(const AttentionScores& op, const HeadLayout& layout, In<T> qkv,
                               In<T> dscores, Out<T> dqkv) {
  expect_layout(op, layout, qkv.size(), dscores.size());
  expect_size(dqkv.size(), layout.tokens() * layout.columns(), "dqkv");
  const std::int64_t row = layout.columns();
  Gemm product{.m = op.s, .n = op.head_dim, .k = op.s, .beta = 1, .ldb = row, .ldc = row};
  for_each_head(layout, [&](const HeadPlace& at) {
    product.transpose_a = false;
    gemm<T>(product, dscores.subspan(at.scores), qkv.subspan(at.key), dqkv.subspan(at.query));
    product.transpose_a = true;
    gemm<T>(product, dscores.subspan(at.scores), qkv.subspan(at.query), dqkv.subspan(at.key));
  });
}

template <class T>
void attention_context_forward(const AttentionContext& op, const HeadLayout& layout,
                               In<T> probabilities, In<T> qkv, Out<T> context) {
  expect_layout(op, layout, qkv.size(), probabilities.size());
  expect_size(context.size(), layout.tokens() * layout.context_columns(), "context");
  const Gemm product{.m = op.s,
                     .n = op.head_dim,
                     .k = op.s,
                     .ldb = layout.columns(),
                     .ldc = layout.context_columns()};
  for_each_head(layout, [&](const HeadPlace& at) {
    gemm<T>(product, probabilities.subspan(at.scores), qkv.subspan(at.value),
            context.subspan(at.context));
  });
}

template <class T>
void attention_context_gradient(const AttentionContext& op, const HeadLayout& layout,
                                In<T> probabilities, In<T> qkv, In<T> dcontext,
                                Out<T> dprobabilities, Out<T> dqkv) {
  expect_layout(op, layout, qkv.size(), probabilities.size());
  expect_size(dcontext.size(), layout.tokens() * layout.context_columns(), "dcontext");
  expect_size(dprobabilities.size(), op.batch * op.s * op.s, "dprobabilities");
  expect_size(dqkv.size(), layout.tokens() * layout.columns(), "dqkv");
  const std::int64_t row = layout.columns(), narrow = layout.context_columns();
  const Gemm of_probabilities{
      .m = op.s, .n = op.s, .k = op.head_dim, .transpose_b = true, .lda = narrow, .ldb = row};
  const Gemm of_values{.m = op.s,
                       .n = op.head_dim,
                       .k = op.s,
                       .transpose_a = true,
                       .beta = 1,
                       .ldb = narrow,
                       .ldc = row};
  for_each_head(layout, [&](const HeadPlace& at) {
    gemm<T>(of_probabilities, dcontext.subspan(at.context), qkv.subspan(at.value),
            dprobabilities.subspan(at.scores));
    gemm<T>(of_values, probabilities.subspan(at.scores), dcontext.subspan(at.context),
            dqkv.subspan(at.value));
  });
}

template decltype(attention_scores_forward<float>) attention_scores_forward<float>;
template decltype(attention_scores_forward<double>) attention_scores_forward<double>;
template decltype(attention_scores_gradient<float>) attention_scores_gradient<float>;
template decltype(attention_scores_gradient<double>) attention_scores_gradient<double>;
template decltype(attention_context_forward<float>) attention_context_forward<float>;
template decltype(attention_context_forward<double>) attention_context_forward<double>;
template decltype(attention_context_gradient<float>) attention_context_gradient<float>;
template decltype(attention_context_gradient<double>) attention_context_gradient<double>;

}  // namespace runtime::cpu
