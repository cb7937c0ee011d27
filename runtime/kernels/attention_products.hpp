// Attention's products as batches: in each of `calls`, one query head of every key head's group, so
// that heads which share keys add their gradients one after the other.
#pragma once

#include "runtime/cpu/gemm.hpp"
#include "runtime/cpu/head_layout.hpp"

namespace runtime::kernels {

// The heads of one call: `count` of them, those of `layout.kv_heads` groups in one sequence.
struct HeadBatch {
  cpu::HeadLayout layout;
  std::int64_t sequence, member;  // of its group
  std::int64_t count() const { return layout.kv_heads; }
  std::int64_t query() const { return layout.query(sequence, member); }
  std::int64_t key() const { return layout.key(sequence, 0); }
  std::int64_t value() const { return layout.value(sequence, 0); }
  // In [tokens, heads · head_dim].
  std::int64_t context() const {
    return sequence * layout.s * layout.context_columns() + member * layout.head_dim;
  }
  // In [sequences, heads, s, s].
  std::int64_t scores() const { return (sequence * layout.heads + member) * layout.s * layout.s; }
  // In [tokens, heads].
  std::int64_t figures() const { return sequence * layout.s * layout.heads + member; }
  // From one group to the next, in elements.
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

// scores[s, s] = q · kᵀ of a qkv tensor; also dP = dcontext · vᵀ, whose rows are `row` apart and
// whose heads `step`.
inline BatchedProduct product_with_keys(const HeadBatch& h, std::int64_t row, std::int64_t step,
                                        std::int64_t score_step) {
  const cpu::HeadLayout& l = h.layout;
  return {
      {.m = l.s, .n = l.s, .k = l.head_dim, .transpose_b = true, .lda = row, .ldb = l.columns()},
      {h.count(), step, h.key_step(), score_step}};
}

// out[s, head_dim] = scores · rows of keys or values, or, `transposed`, keys' gradients += scoresᵀ
// · rows of queries or dcontext. Rows of b and c are row_b and row_c apart, heads step_b and
// step_c.
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
