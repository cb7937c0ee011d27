// Attention as tensor cores compute it, thread by thread on the host, against the CPU's in fp32 on
// the same numbers of 16 bits.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "runtime/cpu/flash_attention.hpp"
#include "runtime/kernels/flash_backward.hpp"
#include "runtime/kernels/flash_forward.hpp"
#include "tests/runtime/support/attention_amounts.hpp"
#include "tests/runtime/support/cpu_gradients.hpp"
#include "tests/runtime/support/host_cta.hpp"
#include "tests/runtime/support/rounding.hpp"
#include "tests/sanitized.hpp"

namespace flash_tiles_test {

namespace cpu_flash_tiles_test {

using runtime::Bf16;
using runtime::F16;
using runtime::cpu::HeadLayout;

namespace {

using Floats = std::vector<float>;
template <class T>
using Narrow = std::vector<T>;

template <class T>
Narrow<T> normals(std::int64_t n, std::uint64_t stream) {
  const auto wide = cpu_test::normals<float>(n, stream);
  return Narrow<T>(wide.begin(), wide.end(), std::allocator<T>());
}

template <class T>
Floats wide(const Narrow<T>& values) {
  return {values.begin(), values.end()};
}

// Relative to the largest of the second.
double difference(const Floats& own, const Floats& reference) {
  double worst = 0, largest = 0;
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (std::isnan(own[i])) return INFINITY;
    worst = std::max(worst, static_cast<double>(std::abs(own[i] - reference[i])));
    largest = std::max(largest, static_cast<double>(std::abs(reference[i])));
  }
  return worst / largest;
}

template <int D, class T>
void compare(const HeadLayout& l) {
  CAPTURE(D);
  CAPTURE(l.s);
  const costmodel::FlashAttention op{l.sequences, l.s, l.heads, l.kv_heads, l.head_dim, true};
  const std::int64_t tokens = l.tokens();
  const Narrow<T> qkv = normals<T>(tokens * l.columns(), 1);
  const Narrow<T> dout = normals<T>(tokens * l.context_columns(), 2);
  const T unset(NAN);
  Narrow<T> out(dout.size(), unset), dqkv(qkv.size(), unset);
  Floats figures(static_cast<std::size_t>(tokens * l.heads)), levels(figures.size());

  const runtime::kernels::FlashShape shape{l, true, 1 / std::sqrt(static_cast<float>(D))};
  run_tiles(shape.tiles(), shape.heads(),
            runtime::kernels::FlashForward<D, T>{shape, qkv.data(), out.data(), figures.data()});
  Floats reference(out.size()), reference_figures(figures.size());
  runtime::cpu::flash_attention_forward(op, wide(qkv), reference, reference_figures);
  // A probability is rounded to the format, and the result is.
  CHECK(difference(wide(out), reference) < 2 * rounding::unit<T>);
  const auto exact_qkv = cpu_test::to<double>(wide(qkv)),
             exact_dout = cpu_test::to<double>(wide(dout));
  const rounding::AttentionAmounts amounts(l, exact_qkv, exact_dout);
  CHECK(rounding::excess(figures, reference_figures, amounts.log_sum_exp,
                         2 * rounding::gamma(amounts.roundings, rounding::unit<float>)) <= 1);

  const runtime::kernels::FlashLevels<T> of_rows{D, out.data(), dout.data(), levels.data()};
  for (std::int64_t row = 0; row < tokens * l.heads; ++row) of_rows(runtime::kernels::Alone{}, row);
  const runtime::kernels::FlashGradientInputs<T> in{shape, qkv.data(), dout.data(), figures.data(),
                                                    levels.data()};
  run_tiles(shape.tiles(), shape.heads(),
            runtime::kernels::FlashQueryGradient<D, T>{in, dqkv.data()});
  run_tiles(shape.tiles(), shape.kv_heads(),
            runtime::kernels::FlashKeyGradient<D, T>{in, dqkv.data()});
  Floats gradient(qkv.size());
  runtime::cpu::flash_attention_gradient(op, wide(qkv), reference, reference_figures, wide(dout),
                                         gradient);
  // A probability or a score's gradient is, the result that goes into that, and the gradient.
  CHECK(difference(wide(dqkv), gradient) < 3 * rounding::unit<T>);
}

}  // namespace

TEST_CASE("attention on tensor cores is the CPU's, forward and backward") {
  // Two tiles, the second not full; with the thread sanitizer a block is 128 threads.
  const std::int64_t s = thread_sanitized ? 70 : 100;
  const HeadLayout shared{.sequences = 1, .s = s, .heads = 2, .kv_heads = 1, .head_dim = 64};
  compare<64, Bf16>(shared);
  if (!thread_sanitized) compare<64, F16>(shared);
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
  compare<64, Bf16>({.sequences = 2, .s = 5, .heads = 2, .kv_heads = 2, .head_dim = 64});
  const HeadLayout wide{.sequences = 1, .s = 130, .heads = 2, .kv_heads = 1, .head_dim = 128};
  compare<128, Bf16>(wide);
  compare<128, F16>(wide);
#endif
}

TEST_CASE("without a mask every query sees every key, and none beyond the last") {
  constexpr std::int64_t s = 70;
  const HeadLayout l{.sequences = 1, .s = s, .heads = 1, .kv_heads = 1, .head_dim = 64};
  Narrow<Bf16> qkv(static_cast<std::size_t>(s * l.columns()), Bf16(0.0F));
  for (std::int64_t row = 0; row < s; ++row)  // equal scores: the result is the mean of the values
    qkv[static_cast<std::size_t>(row * l.columns() + 2 * 64)] = Bf16(static_cast<float>(row % 2));
  Narrow<Bf16> out(static_cast<std::size_t>(s * 64), Bf16(NAN));
  Floats figures(s);
  const runtime::kernels::FlashShape shape{l, false, 0.125F};
  run_tiles(
      shape.tiles(), shape.heads(),
      runtime::kernels::FlashForward<64, Bf16>{shape, qkv.data(), out.data(), figures.data()});
  for (std::int64_t row = 0; row < s; ++row) {
    CHECK(static_cast<float>(out[static_cast<std::size_t>(row * 64)]) == 0.5F);
    CHECK(static_cast<float>(out[static_cast<std::size_t>(row * 64 + 1)]) == 0.0F);
    CHECK(figures[static_cast<std::size_t>(row)] == doctest::Approx(std::log(70)));
  }
}

}  // namespace cpu_flash_tiles_test

}  // namespace flash_tiles_test
