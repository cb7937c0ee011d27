// Attention's products as batched GEMMs. Each call takes one query head of every key-head group, so
// that query heads which share a key head accumulate their gradients in successive calls.
#pragma once

#include "runtime/cpu/gemm.hpp"
#include "runtime/cpu/head_layout.hpp"

namespace runtime::kernels {

// The query heads of one call: the head `member` of each of the `layout.kv_heads` groups, in one
// sequence; count() of them.
struct HeadBatch {
  cpu::HeadLayout layout;
  std::int64_t sequence, member;  // of its group
  std::int64_t count() const { return layout.kv_heads; }
  std::int64_t query() const { return layout.query(sequence, member); }
  std::int64_t key() const { return layout.key(sequence, 0); }
  std::int64_t value() const { return layout.value(sequence, 0); }
  // Offset in [tokens, heads · head_dim], in elements.
  std::int64_t context() const {
    return sequence * layout.s * layout.context_columns() + member * layout.head_dim;
  }
  // Offset in [sequences, heads, s, s], in elements.
  std::int64_t scores() const { return (sequence * layout.heads + member) * layout.s * layout.s; }
  // Offset in [tokens, heads], in elements.
  std::int64_t figures() const { return sequence * layout.s * layout.heads + member; }
  // Strides from one group to the next, in elements.
  std::int64_t query_step() const { return layout.share() * layout.head_dim; }
  std::int64_t key_step() const { return layout.head_dim; }
  std::int64_t score_step() const { return layout.share() * layout.s * layout.s; }
};

template <class Visit>
void for_each_batch(const cpu::HeadLayout& layout, Visit visit) {
  for (std::int64_t sequence = 0; sequence < layout.sequences; ++sequence)
    for (std::int64_t member = 0; member < layout.share(); ++member)
      visit(HeadBatch{layout, sequence, member});
}

struct BatchedProduct {
  cpu::Gemm gemm;
  cpu::Batch batch;
};

// scores[s, s] = q · kᵀ of a qkv tensor; also dP = dcontext · vᵀ. The first operand has row stride
// `row` and head stride `step`, in elements.
inline BatchedProduct product_with_keys(const HeadBatch& h, std::int64_t row, std::int64_t step,
                                        std::int64_t score_step) {
  const cpu::HeadLayout& l = h.layout;
  return {
      {.m = l.s, .n = l.s, .k = l.head_dim, .transpose_b = true, .lda = row, .ldb = l.columns()},
      {h.count(), step, h.key_step(), score_step}};
}

// out[s, head_dim] = scores · (keys or values) or, `transposed`, += scoresᵀ · (queries or
// dcontext), the gradients of keys and values. Row strides row_b, row_c and head strides step_b,
// step_c of b and c, in elements.
struct ScoreProduct {
  bool transposed = false, add = false;
  std::int64_t score_step, row_b, step_b, row_c, step_c;
};
inline BatchedProduct product_of_scores(const HeadBatch& h, const ScoreProduct& p) {
  const cpu::HeadLayout& l = h.layout;
  return {{.m = l.s,
           .n = l.head_dim,
           .k = l.s,
           .transpose_a = p.transposed,
           .beta = p.add ? 1.0 : 0.0,
           .ldb = p.row_b,
           .ldc = p.row_c},
          {h.count(), p.score_step, p.step_b, p.step_c}};
}

}  // namespace runtime::kernels
