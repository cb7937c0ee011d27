#include "runtime/cpu/flash_walk.hpp"
#include "runtime/cpu/rows.hpp"

namespace runtime::cpu {

using namespace costmodel;

namespace {

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
      for (std::int64_t row = 0; row < q.queries; ++row) {
        const std::size_t at = this->out_at(q, row);
        level_[static_cast<std::size_t>(row)] =
            row_dot(this->layout_.head_dim, dout_.data() + at, out_.data() + at);
      }
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

  // Turns scores into probabilities, and their gradient into the gradient of the scores.
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

}  // namespace

template <class T>
void flash_attention_gradient(const FlashAttention& op, In<T> qkv, In<T> out, In<T> log_sum_exp,
                              In<T> dout, Out<T> dqkv) {
  expect_flash_shapes(op, qkv.size(), out.size(), log_sum_exp.size());
  expect_size(dout.size(), static_cast<std::int64_t>(out.size()), "dout");
  expect_size(dqkv.size(), static_cast<std::int64_t>(qkv.size()), "dqkv");
  Backward<T>(op, qkv, out, log_sum_exp, dout, dqkv).run();
}

template decltype(flash_attention_gradient<float>) flash_attention_gradient<float>;
template decltype(flash_attention_gradient<double>) flash_attention_gradient<double>;

}  // namespace runtime::cpu
