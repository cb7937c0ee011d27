#include <limits>

#include "runtime/cpu/flash_walk.hpp"
#include "runtime/cpu/rows.hpp"

namespace runtime::cpu {

using namespace costmodel;

namespace {

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
      std::ranges::fill(maximum_, -std::numeric_limits<T>::infinity());
      std::ranges::fill(sum_, T(0));
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

  // Online softmax: scores of one row become exponentials relative to the largest score so far, and
  // earlier sums are rescaled to it.
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

}  // namespace

template <class T>
void flash_attention_forward(const FlashAttention& op, In<T> qkv, Out<T> out, Out<T> log_sum_exp) {
  expect_flash_shapes(op, qkv.size(), out.size(), log_sum_exp.size());
  Forward<T>(op, qkv, out, log_sum_exp).run();
}

template decltype(flash_attention_forward<float>) flash_attention_forward<float>;
template decltype(flash_attention_forward<double>) flash_attention_forward<double>;

}  // namespace runtime::cpu
