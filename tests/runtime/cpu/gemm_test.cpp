#include "runtime/cpu/gemm.hpp"

#include <doctest/doctest.h>

#include <stdexcept>
#include <thread>

#include "runtime/cpu/linear.hpp"
#include "tests/runtime/support/cpu_gradients.hpp"
#include "tests/runtime/support/rounding.hpp"
#include "tests/sanitized.hpp"

namespace gemm_test {

using namespace cpu_test;
namespace cpu = runtime::cpu;
using costmodel::Linear;

namespace {

// The definition, in double: alpha · op(a) · op(b) + beta · c, for alpha and beta above 0.
Doubles by_definition(const cpu::Gemm& g, const Doubles& a, const Doubles& b, const Doubles& c) {
  const auto at = [](const Doubles& x, std::int64_t row, std::int64_t col, std::int64_t stride,
                     bool transposed) {
    if (transposed) std::swap(row, col);
    return x[static_cast<std::size_t>(row * stride + col)];
  };
  Doubles out = c;
  for (std::int64_t i = 0; i < g.m; ++i)
    for (std::int64_t j = 0; j < g.n; ++j) {
      double sum = 0;
      for (std::int64_t l = 0; l < g.k; ++l)
        sum += at(a, i, l, g.lda, g.transpose_a) * at(b, l, j, g.ldb, g.transpose_b);
      double& element = out[static_cast<std::size_t>(i * g.ldc + j)];
      element = g.alpha * sum + (g.beta == 0 ? 0 : g.beta * element);
    }
  return out;
}

// In units of what roundings may make of it: a term is multiplied twice and is in k + 1 sums.
template <class T>
double excess_over_definition(const cpu::Gemm& g) {
  const auto a = normals<T>(g.lda * (g.transpose_a ? g.k : g.m), 1);
  const auto b = normals<T>(g.ldb * (g.transpose_b ? g.n : g.k), 2);
  auto c = normals<T>(g.ldc * g.m, 3);
  const Doubles wide_a = to<double>(a), wide_b = to<double>(b), wide_c = to<double>(c);
  const Doubles amounts = by_definition(g, absolute(wide_a), absolute(wide_b), absolute(wide_c));
  cpu::gemm<T>(g, a, b, c);
  return rounding::excess(c, by_definition(g, wide_a, wide_b, wide_c), amounts,
                          rounding::beside_definition<T>(static_cast<double>(g.k + 3)));
}

// Columns `first` ... `first + count - 1` of a matrix with `cols` of them.
Doubles columns(const Doubles& x, std::int64_t cols, std::int64_t first, std::int64_t count) {
  Doubles cut;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::int64_t col = static_cast<std::int64_t>(i) % cols;
    if (col >= first && col < first + count) cut.push_back(x[i]);
  }
  return cut;
}

}  // namespace

TEST_CASE("a product is that of the definition, transposed or not, inside larger matrices or not") {
  for (const bool transpose_a : {false, true})
    for (const bool transpose_b : {false, true})
      for (const double beta : {0.0, 1.0, 0.5})
        for (const std::int64_t padding : {0, 3}) {
          cpu::Gemm g{.m = 17,
                      .n = 33,
                      .k = 29,
                      .transpose_a = transpose_a,
                      .transpose_b = transpose_b,
                      .alpha = 0.75,
                      .beta = beta};
          g.lda = (transpose_a ? g.m : g.k) + padding;
          g.ldb = (transpose_b ? g.k : g.n) + padding;
          g.ldc = g.n + padding;
          CHECK(excess_over_definition<float>(g) <= 1);
          CHECK(excess_over_definition<double>(g) <= 1);
        }
}

// Where rows of b lie a multiple of 2 kB apart, some providers' products go by panels.
TEST_CASE("a product of rows that collide in a cache is that of the definition") {
  for (const bool transpose_a : {false, true})
    for (const std::int64_t k : {7, 1100})
      for (const std::int64_t n : {100, 512, 600}) {
        if (sanitized && k == 1100 && n != 600) continue;
        cpu::Gemm g{.m = 65, .n = n, .k = k, .transpose_a = transpose_a, .alpha = 0.75, .beta = 1};
        g.lda = transpose_a ? g.m : g.k;
        g.ldb = 1024;
        g.ldc = g.n;
        CHECK(excess_over_definition<float>(g) <= 1);
      }
}

TEST_CASE("a product that overwrites does not read what was there") {
  auto c = unset<float>(4);
  cpu::gemm({.m = 2, .n = 2, .k = 1}, std::vector<float>{1, 2}, std::vector<float>{3, 4}, c);
  CHECK(c == std::vector<float>{3, 4, 6, 8});
}

TEST_CASE("a batch of products is those products one by one, and a stride of 0 shares a matrix") {
  const cpu::Gemm g{.m = 5, .n = 7, .k = 3};
  const auto a = normals<float>(4 * 15, 1), b = normals<float>(21, 2);
  auto together = unset<float>(4 * 35), apart = together;
  cpu::gemm_batched(g, {4, 15, 0, 35}, a, b, together);
  for (std::size_t i = 0; i < 4; ++i)
    cpu::gemm(g, std::span(a).subspan(15 * i, 15), b, std::span(apart).subspan(35 * i, 35));
  CHECK(together == apart);
}

TEST_CASE("a matrix that is too short for its product is refused") {
  auto c = zeros<float>(4);
  const std::vector<float> two(2), one(1);
  CHECK_THROWS_AS(cpu::gemm({.m = 2, .n = 2, .k = 1}, one, two, c), std::invalid_argument);
  CHECK_THROWS_AS(cpu::gemm({.m = 2, .n = 2, .k = 1}, two, one, c), std::invalid_argument);
  CHECK_THROWS_AS(cpu::gemm({.m = 2, .n = 2, .k = 1}, two, two, std::span(c).first(3)),
                  std::invalid_argument);
}

TEST_CASE("threads that multiply at once get the bytes of one that multiplies alone") {
  const cpu::Gemm g{.m = 96, .n = 160, .k = 224};
  const auto a = normals<float>(g.m * g.k, 1), b = normals<float>(g.k * g.n, 2);
  auto alone = zeros<float>(g.m * g.n);
  cpu::gemm(g, a, b, alone);
  std::vector<std::vector<float>> results(4, zeros<float>(g.m * g.n));
  std::vector<std::thread> threads;
  for (auto& c : results)
    threads.emplace_back([&g, &a, &b, &c] {
      for (int i = 0; i < 5; ++i) cpu::gemm(g, a, b, c);
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& c : results) CHECK(c == alone);
}

TEST_CASE("a build says whose product it uses") {
  const std::string provider = cpu::gemm_provider();
  CHECK((provider == "oneDNN" || provider == "OpenBLAS" || provider == "Eigen"));
}

TEST_CASE("the gradients of a linear layer are its finite differences") {
  const Linear op{4, 6, 5, true, false};
  auto x = normals(20, 1), w = normals(30, 2), bias = normals(6, 3);
  const auto dy = normals(24, 4);
  const auto loss = [&] {
    auto y = unset(24);
    cpu::linear_forward<double>(op, x, w, bias, y);
    return dot(y, dy);
  };
  auto dx = unset(20), dw = normals(30, 5), dbias = normals(6, 6);
  const auto dw_before = dw, dbias_before = dbias;
  cpu::linear_input_gradient<double>(op, dy, w, dx);
  cpu::linear_weight_gradient<double>(op, x, dy, dw);
  cpu::bias_gradient<double>(4, 6, dy, dbias);
  for (std::size_t i = 0; i < dw.size(); ++i) dw[i] -= dw_before[i];
  for (std::size_t i = 0; i < dbias.size(); ++i) dbias[i] -= dbias_before[i];
  CHECK(distance(dx, differences(x, loss)) < difference_bound);
  CHECK(distance(dw, differences(w, loss)) < difference_bound);
  CHECK(distance(dbias, differences(bias, loss)) < difference_bound);
}

TEST_CASE("a linear layer in float is that in double") {
  const Linear op{9, 40, 33, true, false};
  const auto x = normals(9 * 33, 1), w = normals(33 * 40, 2), bias = normals(40, 3);
  auto y = unset(360), amounts = y;
  auto narrow = unset<float>(360);
  cpu::linear_forward<double>(op, x, w, bias, y);
  cpu::linear_forward<double>(op, absolute(x), absolute(w), absolute(bias), amounts);
  cpu::linear_forward(op, to<float>(x), to<float>(w), to<float>(bias), narrow);
  CHECK(rounding::excess(narrow, y, amounts, rounding::beside_definition<float>(33 + 2)) <= 1);
}

TEST_CASE(
    "a linear layer cut by columns gives columns of the whole, and one by rows parts of a sum") {
  const Linear whole{3, 8, 6, false, false};
  const auto x = normals(18, 1), w = normals(48, 2);
  auto y = unset(24), amounts = y, sum = zeros(24);
  cpu::linear_forward<double>(whole, x, w, {}, y);
  cpu::linear_forward<double>(whole, absolute(x), absolute(w), {}, amounts);
  const double share = rounding::beside_definition<double>(6 + 2);
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    auto part = unset(12), addend = unset(24);
    cpu::linear_forward<double>({3, 4, 6, false, false}, x, columns(w, 8, 4 * rank, 4), {}, part);
    CHECK(rounding::excess(part, columns(y, 8, 4 * rank, 4), columns(amounts, 8, 4 * rank, 4),
                           share) <= 1);
    cpu::linear_forward<double>({3, 8, 3, false, false}, columns(x, 6, 3 * rank, 3),
                                std::span(w).subspan(static_cast<std::size_t>(24 * rank), 24), {},
                                addend);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += addend[i];
  }
  CHECK(rounding::excess(sum, y, amounts, share) <= 1);
}

TEST_CASE("a linear layer refuses tensors of another size, by name") {
  const Linear op{2, 2, 2, false, false};
  auto y = zeros<float>(4);
  const std::vector<float> four(4), three(3);
  CHECK_THROWS_WITH_AS(cpu::linear_forward(op, three, four, {}, y), "x has 3 elements, not 4",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(cpu::linear_input_gradient(op, four, three, y), "w has 3 elements, not 4",
                       std::invalid_argument);
}

}  // namespace gemm_test
