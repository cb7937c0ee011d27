#include "runtime/cpu/flash_attention.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "runtime/cpu/gemm.hpp"
#include "runtime/cpu/rows.hpp"

namespace runtime::cpu {

using costmodel::FlashAttention;

namespace {

// One head of one sequence, and a block of `queries` rows from `first` of it.
struct QueryBlock {
  std::int64_t sequence, head, first, queries;
};
struct KeyBlock {
  std::int64_t first, keys;
};

// What both directions know: the tensors that lie still, and scratch for two blocks of scores and
// two figures a query. Scores are [queries, keys] with rows of flash_block.
template <class T>
class Walk {
 public:
  Walk(const FlashAttention& op, In<T> qkv)
      : layout_(layout_of(op)),
        scale_(1 / std::sqrt(static_cast<double>(op.head_dim))),
        qkv_(qkv),
        scores_(flash_block * flash_block) {}

 protected:
  // visit(block) over all heads of all sequences.
  template <class Visit>
  void for_each_query_block(Visit visit) const {
    for (std::int64_t sequence = 0; sequence < layout_.sequences; ++sequence)
      for (std::int64_t head = 0; head < layout_.heads; ++head)
        for (std::int64_t first = 0; first < layout_.s; first += flash_block)
          visit(QueryBlock{sequence, head, first, std::min(flash_block, layout_.s - first)});
  }

  // visit(block) over the keys that some query of the block sees.
  template <class Visit>
  static void for_each_key_block(const QueryBlock& q, Visit visit) {
    const std::int64_t end = q.first + q.queries;
    for (std::int64_t first = 0; first < end; first += flash_block)
      visit(KeyBlock{first, std::min(flash_block, end - first)});
  }

  // How many keys of the block query `row` of its block sees: the causal mask.
  static std::int64_t visible(const QueryBlock& q, const KeyBlock& k, std::int64_t row) {
    return std::min(k.keys, q.first + row + 1 - k.first);
  }

  std::int64_t kv_head(const QueryBlock& q) const { return q.head / layout_.share(); }
  std::size_t query_at(const QueryBlock& q) const {
    return static_cast<std::size_t>(layout_.query(q.sequence, q.head) +
                                    q.first * layout_.columns());
  }
  std::size_t key_at(const QueryBlock& q, const KeyBlock& k) const {
    return static_cast<std::size_t>(layout_.key(q.sequence, kv_head(q)) +
                                    k.first * layout_.columns());
  }
  std::size_t value_at(const QueryBlock& q, const KeyBlock& k) const {
    return static_cast<std::size_t>(layout_.value(q.sequence, kv_head(q)) +
                                    k.first * layout_.columns());
  }
  // In out and dout; and of one row in the log-sum-exp.
  std::size_t out_at(const QueryBlock& q, std::int64_t row = 0) const {
    return static_cast<std::size_t>((q.sequence * layout_.s + q.first + row) *
                                        layout_.context_columns() +
                                    q.head * layout_.head_dim);
  }
  std::size_t figure_at(const QueryBlock& q, std::int64_t row) const {
    return static_cast<std::size_t>((q.sequence * layout_.s + q.first + row) * layout_.heads +
                                    q.head);
  }

  // scores_ = a[queries, head_dim] · b[keys, head_dim]ᵀ, into `scores`.
  void multiply_heads(const QueryBlock& q, const KeyBlock& k, In<T> a, std::int64_t lda, In<T> b,
                      std::vector<T>& scores) const {
    gemm<T>({.m = q.queries,
             .n = k.keys,
             .k = layout_.head_dim,
             .transpose_b = true,
             .lda = lda,
             .ldb = layout_.columns(),
             .ldc = flash_block},
            a, b, scores);
  }

  HeadLayout layout_;
  double scale_;
  In<T> qkv_;
  std::vector<T> scores_;
};

template <class T>
class Forward : Walk<T> {
 public:
  Forward(const FlashAttention& op, In<T> qkv, Out<T> out, Out<T> log_sum_exp)
      : Walk<T>(op, qkv),
        out_(out),
        log_sum_exp_(log_sum_exp),
        maximum_(flash_block),
        sum_(flash_block) {}

  void run() {
    this->for_each_query_block([&](const QueryBlock& q) {
      std::fill(maximum_.begin(), maximum_.end(), -std::numeric_limits<T>::infinity());
      std::fill(sum_.begin(), sum_.end(), T(0));
      this->for_each_key_block(q, [&](const KeyBlock& k) { attend(q, k); });
      finish(q);
    });
  }

 private:
  void attend(const QueryBlock& q, const KeyBlock& k) {
    const std::int64_t columns = this->layout_.columns();
    this->multiply_heads(q, k, this->qkv_.subspan(this->query_at(q)), columns,
                         this->qkv_.subspan(this->key_at(q, k)), this->scores_);
    for (std::int64_t row = 0; row < q.queries; ++row) weigh(q, k, row);
    gemm<T>({.m = q.queries,
             .n = this->layout_.head_dim,
             .k = k.keys,
             .beta = k.first == 0 ? 0.0 : 1.0,
             .lda = flash_block,
             .ldb = columns,
             .ldc = this->layout_.context_columns()},
            this->scores_, this->qkv_.subspan(this->value_at(q, k)), out_.subspan(this->out_at(q)));
  }

  // Scores of one row become exponentials beside the largest score so far; what was summed beside
  // another one before is brought to this one.
  void weigh(const QueryBlock& q, const KeyBlock& k, std::int64_t row) {
    T* scores = this->scores_.data() + row * flash_block;
    const std::int64_t seen = this->visible(q, k, row);
    const T scale = static_cast<T>(this->scale_);
    T& maximum = maximum_[static_cast<std::size_t>(row)];
    T& sum = sum_[static_cast<std::size_t>(row)];
    const T larger = std::max(maximum, scale * row_max(seen, scores));
    const T shrink = static_cast<T>(std::exp(static_cast<double>(maximum - larger)));
    sum = sum * shrink + row_exp(seen, scale, larger, scores, scores);
    std::fill(scores + seen, scores + k.keys, T(0));
    if (k.first > 0 && shrink != 1)
      row_scale(this->layout_.head_dim, shrink, out_.data() + this->out_at(q, row));
    maximum = larger;
  }

  void finish(const QueryBlock& q) {
    for (std::int64_t row = 0; row < q.queries; ++row) {
      const T sum = sum_[static_cast<std::size_t>(row)];
      row_scale(this->layout_.head_dim, 1 / sum, out_.data() + this->out_at(q, row));
      log_sum_exp_[this->figure_at(q, row)] = maximum_[static_cast<std::size_t>(row)] +
                                              static_cast<T>(std::log(static_cast<double>(sum)));
    }
  }

  Out<T> out_, log_sum_exp_;
  std::vector<T> maximum_, sum_;  // of a block of queries
};

template <class T>
class Backward : Walk<T> {
 public:
  Backward(const FlashAttention& op, In<T> qkv, In<T> out, In<T> log_sum_exp, In<T> dout,
           Out<T> dqkv)
      : Walk<T>(op, qkv),
        out_(out),
        log_sum_exp_(log_sum_exp),
        dout_(dout),
        dqkv_(dqkv),
        dscores_(flash_block * flash_block),
        level_(flash_block) {}

  void run() {
    this->for_each_query_block([&](const QueryBlock& q) {
      for (std::int64_t row = 0; row < q.queries; ++row)
        level_[static_cast<std::size_t>(row)] =
            row_dot(this->layout_.head_dim, dout_.data() + this->out_at(q, row),
                    out_.data() + this->out_at(q, row));
      this->for_each_key_block(q, [&](const KeyBlock& k) { attend(q, k); });
    });
  }

 private:
  void attend(const QueryBlock& q, const KeyBlock& k) {
    const std::int64_t columns = this->layout_.columns(), narrow = this->layout_.context_columns();
    const std::size_t query = this->query_at(q), key = this->key_at(q, k);
    const std::size_t value = this->value_at(q, k);
    const In<T> queries = this->qkv_.subspan(query), keys = this->qkv_.subspan(key);
    const In<T> dout = dout_.subspan(this->out_at(q));
    this->multiply_heads(q, k, queries, columns, keys, this->scores_);
    this->multiply_heads(q, k, dout, narrow, this->qkv_.subspan(value), dscores_);
    for (std::int64_t row = 0; row < q.queries; ++row) weigh(q, k, row);
    add_to_keys(q, k, this->scores_, dout, narrow, value);
    add_to_keys(q, k, dscores_, queries, columns, key);
    gemm<T>({.m = q.queries,
             .n = this->layout_.head_dim,
             .k = k.keys,
             .beta = 1,
             .lda = flash_block,
             .ldb = columns,
             .ldc = columns},
            dscores_, keys, dqkv_.subspan(query));
  }

  // Scores become probabilities, and their gradient that of the scores.
  void weigh(const QueryBlock& q, const KeyBlock& k, std::int64_t row) {
    T* p = this->scores_.data() + row * flash_block;
    T* dp = dscores_.data() + row * flash_block;
    const std::int64_t seen = this->visible(q, k, row);
    const T scale = static_cast<T>(this->scale_);
    row_exp(seen, scale, log_sum_exp_[this->figure_at(q, row)], p, p);
    row_softmax_gradient(seen, scale, level_[static_cast<std::size_t>(row)], p, dp, dp);
    std::fill(p + seen, p + k.keys, T(0));
    std::fill(dp + seen, dp + k.keys, T(0));
  }

  // dqkv at `place` += scores[queries, keys]ᵀ · rows[queries, head_dim].
  void add_to_keys(const QueryBlock& q, const KeyBlock& k, const std::vector<T>& scores, In<T> rows,
                   std::int64_t stride, std::size_t place) {
    gemm<T>({.m = k.keys,
             .n = this->layout_.head_dim,
             .k = q.queries,
             .transpose_a = true,
             .beta = 1,
             .lda = flash_block,
             .ldb = stride,
             .ldc = this->layout_.columns()},
            scores, rows, dqkv_.subspan(place));
  }

  In<T> out_, log_sum_exp_, dout_;
  Out<T> dqkv_;
  std::vector<T> dscores_, level_;  // level: sum(dout · out) of each query of a block
};

void expect_shapes(const FlashAttention& op, std::size_t qkv, std::size_t out,
                   std::size_t log_sum_exp) {
  const HeadLayout layout = layout_of(op);
  if (op.key_count() != op.s || op.blocks != 1 || op.value_dim() != op.head_dim)
    throw std::invalid_argument(
        "flash attention here needs all keys at once and one head_dim for keys and values");
  if (op.heads % op.kv_heads != 0)
    throw std::invalid_argument("flash attention needs kv_heads that divide heads");
  expect_size(qkv, layout.tokens() * layout.columns(), "qkv");
  expect_size(out, layout.tokens() * layout.context_columns(), "out");
  expect_size(log_sum_exp, layout.tokens() * layout.heads, "log_sum_exp");
}

}  // namespace

HeadLayout layout_of(const FlashAttention& op) {
  return {op.sequences, op.s, op.heads, op.kv_heads, op.head_dim};
}

template <class T>
void flash_attention_forward(const FlashAttention& op, In<T> qkv, Out<T> out, Out<T> log_sum_exp) {
  expect_shapes(op, qkv.size(), out.size(), log_sum_exp.size());
  Forward<T>(op, qkv, out, log_sum_exp).run();
}

template <class T>
void flash_attention_gradient(const FlashAttention& op, In<T> qkv, In<T> out, In<T> log_sum_exp,
                              In<T> dout, Out<T> dqkv) {
  expect_shapes(op, qkv.size(), out.size(), log_sum_exp.size());
  expect_size(dout.size(), static_cast<std::int64_t>(out.size()), "dout");
  expect_size(dqkv.size(), static_cast<std::int64_t>(qkv.size()), "dqkv");
  Backward<T>(op, qkv, out, log_sum_exp, dout, dqkv).run();
}

template decltype(flash_attention_forward<float>) flash_attention_forward<float>;
template decltype(flash_attention_forward<double>) flash_attention_forward<double>;
template decltype(flash_attention_gradient<float>) flash_attention_gradient<float>;
template decltype(flash_attention_gradient<double>) flash_attention_gradient<double>;

}  // namespace runtime::cpu
