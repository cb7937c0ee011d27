// What roundings may make of causal attention, by definition in double: for rounding.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/cpu/head_layout.hpp"

namespace rounding {

// The error of each element is below gamma(roundings) times its amount.
class AttentionAmounts {
 public:
  using Doubles = std::vector<double>;
  AttentionAmounts(const runtime::cpu::HeadLayout& layout, const Doubles& qkv, const Doubles& dout)
      : out(dout.size()),
        log_sum_exp(static_cast<std::size_t>(layout.tokens() * layout.heads)),
        dqkv(qkv.size()),
        // Of the longest sums, over keys, the queries of a group and a head, one upon the other;
        // and of what stands between them, exponential, scale, division and a block's new maximum.
        roundings(static_cast<double>(layout.s * (1 + layout.share()) + layout.head_dim + 20)),
        l_(layout),
        qkv_(qkv),
        dout_(dout),
        scale_(1 / std::sqrt(static_cast<double>(layout.head_dim))) {
    for (std::int64_t sequence = 0; sequence < l_.sequences; ++sequence)
      for (std::int64_t head = 0; head < l_.heads; ++head)
        for (std::int64_t row = 0; row < l_.s; ++row) add(sequence, head, row);
  }

  Doubles out, log_sum_exp, dqkv;
  double roundings;

 private:
  // One query, and the keys it sees: where they stand; of each key its probability p, and D, the
  // absolute terms of its product with the gradient of the result.
  struct Row {
    std::size_t query, out;
    std::vector<std::size_t> keys, values;
    Doubles p, d;
    double level = 0;  // sum of p · D
    double share = 1;  // of a probability that its error may be, in units of gamma
  };

  void add(std::int64_t sequence, std::int64_t head, std::int64_t row) {
    const std::int64_t token = sequence * l_.s + row, kv = head / l_.share();
    Row r{.query = at(l_.query(sequence, head), row),
          .out = static_cast<std::size_t>(token * l_.context_columns() + head * l_.head_dim)};
    for (std::int64_t key = 0; key <= row; ++key) {
      r.keys.push_back(at(l_.key(sequence, kv), key));
      r.values.push_back(at(l_.value(sequence, kv), key));
    }
    const double figure = weigh(r);
    log_sum_exp[static_cast<std::size_t>(token * l_.heads + head)] = r.share + std::abs(figure);
    for (std::size_t key = 0; key < r.p.size(); ++key) spread(r, key);
  }

  // Fills in all but the places; returns the logarithm of the sum of exponentials. The error of a
  // score is that of a probability, and once more of its row's sum.
  double weigh(Row& r) const {
    double sum = 0, most = 0;
    for (std::size_t key = 0; key < r.keys.size(); ++key) {
      r.p.push_back(std::exp(scale_ * dot(qkv_, r.query, r.keys[key], false)));
      r.d.push_back(dot(dout_, r.out, r.values[key], true));
      most = std::max(most, scale_ * dot(qkv_, r.query, r.keys[key], true));
      sum += r.p.back();
    }
    for (std::size_t key = 0; key < r.p.size(); ++key) {
      r.p[key] /= sum;
      r.level += r.p[key] * r.d[key];
    }
    r.share = 1 + 2 * most + std::abs(std::log(sum));
    return std::log(sum);
  }

  // What key and query add to out = p · v, dv = p · dout, dq = ds · k and dk = ds · q, where
  // ds = scale · p · (dout · v - sum(dout · out)).
  void spread(const Row& r, std::size_t key) {
    const double of_p = (1 + r.share) * r.p[key];
    const double of_ds = (2 * r.share + 4) * scale_ * r.p[key] * (r.d[key] + r.level);
    for (std::size_t i = 0; i < static_cast<std::size_t>(l_.head_dim); ++i) {
      const std::size_t q = r.query + i, k = r.keys[key] + i, v = r.values[key] + i;
      out[r.out + i] += of_p * std::abs(qkv_[v]);
      dqkv[v] += of_p * std::abs(dout_[r.out + i]);
      dqkv[q] += of_ds * std::abs(qkv_[k]);
      dqkv[k] += of_ds * std::abs(qkv_[q]);
    }
  }

  std::size_t at(std::int64_t first, std::int64_t row) const {
    return static_cast<std::size_t>(first + row * l_.columns());
  }
  // Of a head's row of `x` and one of qkv, or of their absolute values.
  double dot(const Doubles& x, std::size_t a, std::size_t b, bool absolute) const {
    double sum = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(l_.head_dim); ++i) {
      const double term = x[a + i] * qkv_[b + i];
      sum += absolute ? std::abs(term) : term;
    }
    return sum;
  }

  const runtime::cpu::HeadLayout l_;
  const Doubles &qkv_, &dout_;
  const double scale_;
};

}  // namespace rounding
