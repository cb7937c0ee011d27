// What runs a kernel on a GPU, as far as the host can say: teams, launch shapes, and products as
// cuBLASLt takes them.
#include <doctest/doctest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "runtime/cpu/gemm.hpp"
#include "runtime/cpu/random.hpp"
#include "runtime/cuda/launch_shape.hpp"
#include "runtime/kernels/product.hpp"
#include "tests/runtime/support/cpu_gradients.hpp"
#include "tests/runtime/support/host_executor.hpp"
#include "tests/runtime/support/rounding.hpp"

using cpu_test::absolute;
namespace kernels_test {

using cpu_test::normals;
using runtime::Bf16;
using runtime::cuda::LaunchShape;
using runtime::kernels::Alone;
using runtime::kernels::ColumnMajorProduct;

namespace {

using Floats = std::vector<float>;

double largest_difference(const Floats& a, const Floats& b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    worst = std::max(worst, static_cast<double>(std::abs(a[i] - b[i])));
  return worst;
}

// What `make(out)` writes, by a team of one and by teams of several: rows of 77 columns.
constexpr std::int64_t rows = 5, cols = 77;

template <class Make>
void expect_teams_agree(Make make, std::size_t size) {
  Floats alone = cpu_test::zeros<float>(static_cast<std::int64_t>(size));
  const auto kernel = make(alone.data());
  for (std::int64_t row = 0; row < rows; ++row) kernel(Alone{}, row);
  const double largest = largest_difference(alone, Floats(size));
  CHECK(largest > 0);
  for (const int members : {2, 7}) {
    CAPTURE(members);
    Floats together(size);
    run_team(members, rows, make(together.data()));
    CHECK(largest_difference(alone, together) <= 2e-6 * largest);
  }
}

// Column-major, element by element.
void multiply(const ColumnMajorProduct& p, const Floats& first, const Floats& second,
              Floats& result) {
  for (std::int64_t row = 0; row < p.rows; ++row) {
    for (std::int64_t col = 0; col < p.cols; ++col) {
      double sum = 0;
      for (std::int64_t k = 0; k < p.inner; ++k) {
        const auto a = p.transpose_first ? k + row * p.first_stride : row + k * p.first_stride;
        const auto b = p.transpose_second ? col + k * p.second_stride : k + col * p.second_stride;
        sum += static_cast<double>(first[static_cast<std::size_t>(a)]) *
               static_cast<double>(second[static_cast<std::size_t>(b)]);
      }
      result[static_cast<std::size_t>(row + col * p.result_stride)] = static_cast<float>(sum);
    }
  }
}

}  // namespace

TEST_CASE("a row is the same whether one or a team computes it") {
  using namespace runtime::kernels;
  const auto x = normals<float>(rows * cols, 1), dy = normals<float>(rows * cols, 2);
  const auto gain = normals<float>(cols, 3), shift = normals<float>(cols, 4);
  const auto figures = normals<float>(2 * rows, 5);
  constexpr std::size_t n = rows * cols;
  Floats aside(n);
  expect_teams_agree(
      [&](float* y) {
        return NormForward<float>{true,        cols,         1e-5F, x.data(),
                                  gain.data(), shift.data(), y,     aside.data()};
      },
      n);
  expect_teams_agree(
      [&](float* dx) {
        return NormInputGradient<float>{true,        false,          cols,      x.data(),
                                        gain.data(), figures.data(), dy.data(), dx};
      },
      n);
  expect_teams_agree(
      [&](float* p) {
        return CausalSoftmax<float>{cols, 0.5F, x.data(), p, aside.data(), RowPlaces{cols, 1, 1}};
      },
      n);
  expect_teams_agree(
      [&](float* ds) {
        return SoftmaxGradient<float>{cols, 0.5F, x.data(), dy.data(), ds};
      },
      n);
  const std::vector<std::int64_t> targets{3, 76, 0, 500, 40};
  expect_teams_agree(
      [&](float* out) {
        return LogitExponentials<float, float>{cols,           0,   x.data(), figures.data(),
                                               targets.data(), out, out + n,  out + n + rows};
      },
      n + 2 * rows);
}

TEST_CASE("a team's sum and maximum reach every member") {
  std::vector<double> sums(3);
  const auto kernel = [&](const ThreadTeam& team, std::int64_t) {
    const double sum = team.sum(static_cast<double>(team.rank() + 1));
    const float most = team.max(static_cast<float>(-team.rank()));
    sums[static_cast<std::size_t>(team.rank())] = sum + static_cast<double>(most);
  };
  run_team(3, 1, kernel);
  CHECK(sums == std::vector<double>{6, 6, 6});
}

TEST_CASE("launches cover what they are asked for, and no more blocks than a grid takes") {
  using namespace runtime::cuda;
  for (const std::int64_t count : {std::int64_t{1}, std::int64_t{255}, std::int64_t{256},
                                   std::int64_t{257}, std::int64_t{1} << 40U}) {
    const LaunchShape shape = element_shape(count);
    CHECK(shape.blocks >= 1);
    CHECK(shape.blocks <= most_blocks);
    CHECK((shape.blocks == most_blocks || std::int64_t{shape.blocks} * shape.threads >= count));
    CHECK((shape.blocks == 1 || std::int64_t{shape.blocks - 1} * shape.threads < count));
  }
  CHECK(row_shape(9, 128).blocks == 3);
  CHECK(row_shape(9, 128).threads == 128);
  CHECK(row_shape(9, 1025).blocks == 9);
  CHECK(row_shape(9, 1025).threads == 256);
  CHECK(row_shape(9, 50000).threads == 1024);
  CHECK(column_shape(100, 33).blocks == 2);
  CHECK(column_shape(100, 33).slices == 1);
  for (const std::int64_t rows : {1, 127, 4096, 1 << 20}) {
    for (const std::int64_t cols : {1, 64, 1152, 20000, 1 << 20}) {
      const ColumnShape shape = column_shape(rows, cols);
      CHECK(shape.slices >= 1);
      CHECK((shape.slices == 1 || rows / shape.slices >= 128));
      CHECK((shape.slices == 1 || shape.slices * cols <= most_column_parts));
    }
  }
  CHECK(column_shape(8192, 1152).slices * column_shape(8192, 1152).blocks >= column_blocks);
  for (const std::int64_t width : {1, 1024, 1025, 100000})
    CHECK(row_shape(1, width).threads % 32 == 0);
}

TEST_CASE("the alignment of an address is the power of two that divides it") {
  using runtime::cuda::alignment_of;
  CHECK(alignment_of(0) == 256);
  CHECK(alignment_of(4) == 4);
  CHECK(alignment_of(0x7f0000000010) == 16);
  CHECK(alignment_of(768) == 256);
  CHECK(alignment_of(96 | 8) == 8);
}

TEST_CASE("a row-major product is cuBLASLt's column-major one with its operands exchanged") {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      for (const std::int64_t gap : {0, 3}) {
        runtime::cpu::Gemm g{
            .m = 4, .n = 6, .k = 5, .transpose_a = transpose_a, .transpose_b = transpose_b};
        if (gap > 0) {
          g.lda = (transpose_a ? g.m : g.k) + gap;
          g.ldb = (transpose_b ? g.k : g.n) + gap;
          g.ldc = g.n + gap;
        }
        const auto a = normals<float>(64, 1), b = normals<float>(96, 2);
        Floats expected(64), found(64);
        runtime::cpu::gemm(g, a, b, expected);
        const auto p = runtime::kernels::column_major(g);
        multiply(p, b, a, found);
        Floats amounts(64);
        multiply(p, absolute(b), absolute(a), amounts);
        CHECK(rounding::excess(expected, found, cpu_test::to<double>(amounts),
                               rounding::gamma(5 + 2, rounding::unit<float>)) <= 1);
        CHECK(p.first_rows() <= p.first_stride);
        CHECK(p.second_rows() <= p.second_stride);
        CHECK(p.first_rows() * p.first_cols() == g.n * g.k);
        CHECK(p.second_rows() * p.second_cols() == g.m * g.k);
      }
    }
  }
}

TEST_CASE("vectors are added, compared and stepped as in the host's memory") {
  const auto start = normals<float>(100, 1), other = normals<float>(100, 2);
  auto copied = other;
  const auto check = [&](auto make, auto by_host) {
    Floats own = start, reference = start;
    const auto kernel = make(own.data());
    for (std::int64_t i = 0; i < 100; ++i) kernel(i);
    by_host(reference);
    CHECK(own == reference);
    CHECK(own != start);
  };
  using runtime::Reduction;
  check(
      [&](float* v) {
        return runtime::kernels::AddTo<float>{other.data(), v};
      },
      [&](Floats& v) { runtime::host_memory().reduce(Reduction::sum, copied, v); });
  check(
      [&](float* v) {
        return runtime::kernels::LargerOf<float>{other.data(), v};
      },
      [&](Floats& v) { runtime::host_memory().reduce(Reduction::max, copied, v); });
  const runtime::cpu::AdamW how{.lr = 1e-3, .weight_decay = 0.1};
  Floats mean(100), square(100), host_mean(100), host_square(100);
  check(
      [&](float* v) {
        return runtime::kernels::AdamStep{runtime::cpu::adam_figures<float>(how, 3, 1), v,
                                          other.data(), mean.data(), square.data()};
      },
      [&](Floats& v) {
        runtime::host_memory().adamw(v, other, host_mean, host_square, how, 3, 1);
      });
  CHECK(mean == host_mean);
  CHECK(square == host_square);
}

TEST_CASE("one kernel updates many tensors as each alone, and rounds those that are kept narrow") {
  const runtime::cpu::AdamW how{.lr = 1e-3, .weight_decay = 0.1};
  struct One {
    Floats params, grads, mean, square;
    std::vector<Bf16> rounded;
  };
  const auto make = [] {
    std::vector<One> all;
    for (const std::size_t n : {1, 100, 37, 2}) {
      One one{Floats(n), Floats(n), Floats(n), Floats(n), std::vector<Bf16>(n % 2 == 0 ? n : 0)};
      for (std::size_t i = 0; i < n; ++i) {
        one.params[i] = runtime::cpu::normal(1, n, i);
        one.grads[i] = runtime::cpu::normal(2, n, i);
        one.mean[i] = 0.1F * runtime::cpu::normal(3, n, i);
        one.square[i] = 0.5F;
      }
      all.push_back(std::move(one));
    }
    return all;
  };
  auto own = make(), expected = make();
  std::vector<runtime::kernels::AdamEntry> list;
  std::vector<runtime::AdamTensor> tensors;
  std::int64_t count = 0;
  for (std::size_t k = 0; k < own.size(); ++k) {
    One& a = own[k];
    One& b = expected[k];
    list.push_back({count, a.params.data(), a.grads.data(), a.mean.data(), a.square.data(),
                    a.rounded.empty() ? nullptr : a.rounded.data(), runtime::Number::bf16});
    count += static_cast<std::int64_t>(a.params.size());
    tensors.push_back({b.params,
                       b.grads,
                       b.mean,
                       b.square,
                       {b.rounded.data(), b.rounded.size(), runtime::Number::bf16}});
  }
  const runtime::kernels::AdamSteps kernel{runtime::cpu::adam_figures<float>(how, 3, 0.25),
                                           static_cast<std::int64_t>(list.size()), list.data()};
  for (std::int64_t i = 0; i < count; ++i) kernel(i);
  runtime::host_memory().adamw(tensors, how, 3, 0.25);
  for (std::size_t k = 0; k < own.size(); ++k) {
    CHECK(own[k].params == expected[k].params);
    CHECK(own[k].mean == expected[k].mean);
    CHECK(own[k].square == expected[k].square);
    for (std::size_t i = 0; i < own[k].rounded.size(); ++i) {
      CHECK(own[k].rounded[i].bits() == expected[k].rounded[i].bits());
      CHECK(own[k].rounded[i].bits() == Bf16(own[k].params[i]).bits());
    }
  }
}

}  // namespace kernels_test
