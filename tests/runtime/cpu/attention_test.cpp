#include "runtime/cpu/attention.hpp"

#include <doctest/doctest.h>

#include <stdexcept>

#include "runtime/cpu/flash_attention.hpp"
#include "runtime/cpu/rotary.hpp"
#include "runtime/cpu/softmax.hpp"
#include "tests/runtime/support/attention_amounts.hpp"
#include "tests/runtime/support/cpu_gradients.hpp"
#include "tests/runtime/support/rounding.hpp"

namespace attention_test {

using namespace cpu_test;
namespace cpu = runtime::cpu;
using costmodel::FlashAttention;
using cpu::HeadLayout;

namespace {

std::int64_t size_of(const HeadLayout& layout) { return layout.tokens() * layout.columns(); }

double scale_of(const HeadLayout& layout) {
  return 1 / std::sqrt(static_cast<double>(layout.head_dim));
}

// Attention in three kernels, forward and backward.
template <class T>
struct Unfused {
  HeadLayout layout;
  std::int64_t batch = layout.sequences * layout.heads, area = batch * layout.s * layout.s;
  std::vector<T> probabilities = unset<T>(area);

  std::vector<T> forward(const std::vector<T>& qkv) {
    auto scores = unset<T>(area), out = unset<T>(layout.tokens() * layout.context_columns());
    cpu::attention_scores_forward<T>({batch, layout.s, layout.head_dim}, layout, qkv, scores);
    cpu::softmax_forward<T>({batch * layout.s, layout.s, true}, scale_of(layout), true, scores,
                            probabilities);
    cpu::attention_context_forward<T>({batch, layout.s, layout.head_dim}, layout, probabilities,
                                      qkv, out);
    return out;
  }

  std::vector<T> gradient(const std::vector<T>& qkv, const std::vector<T>& dout) {
    auto dscores = unset<T>(area), dqkv = zeros<T>(size_of(layout));
    cpu::attention_context_gradient<T>({batch, layout.s, layout.head_dim}, layout, probabilities,
                                       qkv, dout, dscores, dqkv);
    cpu::softmax_gradient<T>({batch * layout.s, layout.s, true}, scale_of(layout), probabilities,
                             dscores, dscores);
    cpu::attention_scores_gradient<T>({batch, layout.s, layout.head_dim}, layout, qkv, dscores,
                                      dqkv);
    return dqkv;
  }
};

// What flash and unfused attention differ by, in units of what roundings may make of it: the
// results, and the gradients of qkv.
template <class T>
std::pair<double, double> flash_beside_unfused(const HeadLayout& layout) {
  const FlashAttention op{layout.sequences, layout.s,        layout.heads,
                          layout.kv_heads,  layout.head_dim, true};
  const auto qkv = normals<T>(size_of(layout), 1);
  auto out = unset<T>(layout.tokens() * layout.context_columns());
  auto log_sum_exp = unset<T>(layout.tokens() * layout.heads);
  const auto dout = normals<T>(layout.tokens() * layout.context_columns(), 2);
  auto dqkv = zeros<T>(size_of(layout));
  cpu::flash_attention_forward<T>(op, qkv, out, log_sum_exp);
  cpu::flash_attention_gradient<T>(op, qkv, out, log_sum_exp, dout, dqkv);
  Unfused<double> unfused{layout};
  const Doubles wide(qkv.begin(), qkv.end()), wide_dout(dout.begin(), dout.end());
  const Doubles expected = unfused.forward(wide);
  const rounding::AttentionAmounts amounts(layout, wide, wide_dout);
  const double share = rounding::beside_definition<T>(amounts.roundings);
  return {rounding::excess(out, expected, amounts.out, share),
          rounding::excess(dqkv, unfused.gradient(wide, wide_dout), amounts.dqkv, share)};
}

}  // namespace

TEST_CASE("a causal softmax gives each row its earlier columns, and rows of sum 1") {
  const auto scores = normals(2 * 4 * 4, 1);
  auto p = unset(32);
  cpu::softmax_forward<double>({8, 4, true}, 0.5, true, scores, p);
  for (std::size_t row = 0; row < 8; ++row) {
    double sum = 0, exponentials = 0;
    for (std::size_t col = 0; col <= row % 4; ++col)
      exponentials += std::exp(0.5 * scores[4 * row + col]);
    for (std::size_t col = 0; col < 4; ++col) {
      const double expected =
          col <= row % 4 ? std::exp(0.5 * scores[4 * row + col]) / exponentials : 0;
      CHECK(p[4 * row + col] == doctest::Approx(expected).epsilon(1e-14));
      sum += p[4 * row + col];
    }
    CHECK(sum == doctest::Approx(1).epsilon(1e-14));
  }
}

TEST_CASE("the gradient of a softmax is its finite differences, masked or not") {
  for (const bool causal : {false, true}) {
    auto scores = normals(3 * 36, 1);
    const auto dp = normals(3 * 36, 2);
    auto p = unset(108), dscores = unset(108);
    const auto loss = [&] {
      cpu::softmax_forward<double>({18, 6, true}, 0.7, causal, scores, p);
      return dot(p, dp);
    };
    loss();
    cpu::softmax_gradient<double>({18, 6, true}, 0.7, p, dp, dscores);
    CHECK(distance(dscores, differences(scores, loss)) < difference_bound);
  }
}

TEST_CASE("a softmax of large scores overflows nowhere, in float as in double") {
  auto scores = normals(2 * 64 * 64, 1);
  for (double& score : scores) score = 300 * score + 5000;
  auto p = unset(8192);
  auto narrow = unset<float>(8192);
  const auto given = to<float>(scores);
  cpu::softmax_forward<double>({128, 64, true}, 0.01, true, Doubles(given.begin(), given.end()), p);
  cpu::softmax_forward({128, 64, true}, 0.01, true, given, narrow);
  CHECK(distance(narrow, p) < 6 * float_bound);  // exponents about 50 have lost as many digits
}

TEST_CASE("scores are products of queries and the keys of their group") {
  const HeadLayout layout{2, 3, 4, 2, 5};
  const auto qkv = normals(size_of(layout), 1);
  auto scores = unset(2 * 4 * 9);
  cpu::attention_scores_forward<double>({8, 3, 5}, layout, qkv, scores);
  for (std::size_t head = 0; head < 4; ++head) {
    double expected = 0;  // of sequence 1, query 2 and key 1
    for (std::size_t i = 0; i < 5; ++i)
      expected += qkv[5 * 40 + head * 5 + i] * qkv[4 * 40 + 20 + head / 2 * 5 + i];
    CHECK(scores[(4 + head) * 9 + 2 * 3 + 1] == doctest::Approx(expected).epsilon(1e-13));
  }
}

TEST_CASE("the gradient of unfused attention is its finite differences, grouped queries or not") {
  for (const std::int64_t kv_heads : {1, 2, 4}) {
    Unfused<double> attention{{2, 5, 4, kv_heads, 3}};
    auto qkv = normals(size_of(attention.layout), 1);
    const auto dout = normals(10 * 12, 2);
    const auto loss = [&] { return dot(attention.forward(qkv), dout); };
    loss();
    const auto dqkv = attention.gradient(qkv, dout);
    CHECK(distance(dqkv, differences(qkv, loss)) < difference_bound);
  }
}

TEST_CASE("flash attention equals attention that keeps its scores, across blocks and groups") {
  for (const HeadLayout& layout : {HeadLayout{2, 7, 4, 2, 6}, HeadLayout{1, 128, 2, 2, 8},
                                   HeadLayout{2, 300, 2, 1, 16}, HeadLayout{1, 257, 1, 1, 4}}) {
    const auto wide = flash_beside_unfused<double>(layout);
    CHECK(wide.first <= 1);
    CHECK(wide.second <= 1);
    const auto narrow = flash_beside_unfused<float>(layout);
    CHECK(narrow.first <= 1);
    CHECK(narrow.second <= 1);
  }
}

TEST_CASE("flash attention keeps the logarithm of the sum of exponentials of a row's scores") {
  const FlashAttention op{1, 150, 1, 1, 4, true};
  const auto qkv = normals(150 * 12, 1);
  auto out = unset(600), log_sum_exp = unset(150);
  cpu::flash_attention_forward<double>(op, qkv, out, log_sum_exp);
  double sum = 0;
  for (std::size_t key = 0; key < 150; ++key) {
    double score = 0;
    for (std::size_t i = 0; i < 4; ++i) score += qkv[149 * 12 + i] * qkv[key * 12 + 4 + i];
    sum += std::exp(score / 2);
  }
  CHECK(log_sum_exp.back() == doctest::Approx(std::log(sum)).epsilon(1e-13));
}

TEST_CASE("flash attention adds to the gradient that is there") {
  const FlashAttention op{1, 5, 2, 1, 4, true};
  const auto qkv = normals(80, 1), dout = normals(40, 2);
  auto out = unset(40), log_sum_exp = unset(10), once = zeros(80);
  cpu::flash_attention_forward<double>(op, qkv, out, log_sum_exp);
  cpu::flash_attention_gradient<double>(op, qkv, out, log_sum_exp, dout, once);
  auto twice = once;
  cpu::flash_attention_gradient<double>(op, qkv, out, log_sum_exp, dout, twice);
  for (double& element : once) element *= 2;
  CHECK(distance(twice, once) < 1e-14);
}

TEST_CASE("flash attention refuses what it has not learned: keys of other ranks, wider values") {
  const std::vector<float> qkv(48);
  auto out = zeros<float>(16), log_sum_exp = zeros<float>(4);
  FlashAttention op{1, 4, 1, 1, 4, true};
  CHECK_NOTHROW(cpu::flash_attention_forward(op, qkv, out, log_sum_exp));
  op.keys = 8;
  CHECK_THROWS_AS(cpu::flash_attention_forward(op, qkv, out, log_sum_exp), std::invalid_argument);
  op.keys = 0;
  op.v_head_dim = 8;
  CHECK_THROWS_AS(cpu::flash_attention_forward(op, qkv, out, log_sum_exp), std::invalid_argument);
}

TEST_CASE("rotary embedding turns pairs half a head apart, and leaves position 0 and the values") {
  const HeadLayout layout{1, 3, 1, 1, 4};
  const cpu::RotaryTable<double> table(3, 4);
  Doubles qkv = normals(36, 1), out = unset(36);
  cpu::rotary_forward<double>({3, 8}, layout, table, qkv, out);
  CHECK(std::equal(out.begin(), out.begin() + 12, qkv.begin()));
  CHECK(std::equal(out.begin() + 32, out.begin() + 36, qkv.begin() + 32));
  const std::size_t key = 2 * 12 + 4;  // of position 2; pair 1 turns by 2 / 100
  CHECK(out[key] ==
        doctest::Approx(qkv[key] * std::cos(2) - qkv[key + 2] * std::sin(2)).epsilon(1e-14));
  CHECK(out[key + 3] ==
        doctest::Approx(qkv[key + 3] * std::cos(0.02) + qkv[key + 1] * std::sin(0.02))
            .epsilon(1e-14));
}

TEST_CASE("rotary embedding's gradient is the turn back: its adjoint, which is its inverse") {
  const HeadLayout layout{2, 5, 4, 2, 6};
  const cpu::RotaryTable<double> table(5, 6, 500, 3);
  const auto x = normals(size_of(layout), 1), dy = normals(size_of(layout), 2);
  auto y = unset(size_of(layout)), dx = y, back = y;
  cpu::rotary_forward<double>({10, 36}, layout, table, x, y);
  cpu::rotary_gradient<double>({10, 36}, layout, table, dy, dx);
  CHECK(dot(dy, y) == doctest::Approx(dot(dx, x)).epsilon(1e-13));
  cpu::rotary_gradient<double>({10, 36}, layout, table, y, back);
  CHECK(distance(back, x) < 1e-14);
  cpu::rotary_forward<double>({10, 36}, layout, table, back, back);  // in place
  CHECK(distance(back, y) < 1e-14);
}

TEST_CASE("scores after a rotary embedding depend on how far apart query and key are") {
  const HeadLayout layout{1, 6, 1, 1, 8};
  const auto head = normals(24, 1);
  Doubles qkv;
  for (int position = 0; position < 6; ++position) qkv.insert(qkv.end(), head.begin(), head.end());
  auto scores = unset(36);
  cpu::rotary_forward<double>({6, 16}, layout, cpu::RotaryTable<double>(6, 8), qkv, qkv);
  cpu::attention_scores_forward<double>({1, 6, 8}, layout, qkv, scores);
  CHECK(scores[3 * 6 + 1] == doctest::Approx(scores[5 * 6 + 3]).epsilon(1e-12));
  CHECK(std::abs(scores[3 * 6 + 1] - scores[3 * 6 + 2]) > 1e-3);
}

TEST_CASE("a rotary table of a later part of a sequence is that part of the table") {
  const cpu::RotaryTable<float> whole(8, 6), part(4, 6, 10000, 4);
  CHECK(std::equal(part.cosine.begin(), part.cosine.end(), whole.cosine.begin() + 12));
  CHECK(std::equal(part.sine.begin(), part.sine.end(), whole.sine.begin() + 12));
  CHECK_THROWS_AS(cpu::RotaryTable<float>(8, 5), std::invalid_argument);
}

}  // namespace attention_test
