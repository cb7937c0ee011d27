// Speed of the CPU kernels that decide a layer's time: products by this build's provider (set
// SHARDPLAN_BLAS to compare) and the loops between them.
#include <benchmark/benchmark.h>

#include <vector>

#include "runtime/cpu/activation.hpp"
#include "runtime/cpu/dropout.hpp"
#include "runtime/cpu/flash_attention.hpp"
#include "runtime/cpu/gemm.hpp"
#include "runtime/cpu/norm.hpp"
#include "runtime/cpu/softmax.hpp"

namespace {

namespace cpu = runtime::cpu;

std::vector<float> ramp(std::int64_t n) {
  std::vector<float> values(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i % 13) / 13 - 0.5F;
  return values;
}

void report(benchmark::State& state, const char* name, double each) {
  state.counters[name] = benchmark::Counter(each, benchmark::Counter::kIsIterationInvariantRate);
}

// m, n, k and which operand is transposed: 0 none (forward), 1 b (input gradient), 2 a (weight
// gradient).
void product(benchmark::State& state) {
  const cpu::Gemm g{.m = state.range(0),
                    .n = state.range(1),
                    .k = state.range(2),
                    .transpose_a = state.range(3) == 2,
                    .transpose_b = state.range(3) == 1};
  const auto a = ramp(g.m * g.k), b = ramp(g.k * g.n);
  auto c = ramp(g.m * g.n);
  for (auto _ : state) cpu::gemm(g, a, b, c);
  state.SetLabel(cpu::gemm_provider());
  report(state, "FLOP/s", 2.0 * static_cast<double>(g.m * g.n * g.k));
}
BENCHMARK(product)
    ->ArgsProduct({{1024}, {1024}, {1024}, {0, 1, 2}})
    ->ArgsProduct({{256}, {768}, {768}, {0, 1, 2}})
    ->ArgsProduct({{512}, {256}, {1024}, {0, 1, 2}})
    ->Args({128, 128, 64, 1})
    ->Args({16, 768, 768, 0});

const costmodel::FlashAttention attention_op{1, 1024, 4, 4, 64, true};

void flash_forward(benchmark::State& state) {
  const auto layout = cpu::layout_of(attention_op);
  const auto qkv = ramp(layout.tokens() * layout.columns());
  auto out = ramp(layout.tokens() * layout.context_columns());
  auto lse = ramp(layout.tokens() * layout.heads);
  for (auto _ : state) cpu::flash_attention_forward(attention_op, qkv, out, lse);
  report(state, "tokens/s", static_cast<double>(layout.tokens()));
}
BENCHMARK(flash_forward);

void flash_backward(benchmark::State& state) {
  const auto layout = cpu::layout_of(attention_op);
  const auto qkv = ramp(layout.tokens() * layout.columns());
  auto out = ramp(layout.tokens() * layout.context_columns());
  auto lse = ramp(layout.tokens() * layout.heads);
  auto dqkv = qkv;
  cpu::flash_attention_forward(attention_op, qkv, out, lse);
  for (auto _ : state) cpu::flash_attention_gradient(attention_op, qkv, out, lse, out, dqkv);
  report(state, "tokens/s", static_cast<double>(layout.tokens()));
}
BENCHMARK(flash_backward);

constexpr std::int64_t rows = 256, cols = 1024;

void gelu(benchmark::State& state) {
  const auto x = ramp(rows * cols);
  auto y = x;
  for (auto _ : state) cpu::activation_forward({rows, cols, false, true}, x, y);
  report(state, "elements/s", rows * cols);
}
BENCHMARK(gelu);

void layer_norm(benchmark::State& state) {
  const costmodel::Norm op{rows, cols, costmodel::Normalization::layernorm};
  const auto x = ramp(rows * cols), gain = ramp(cols);
  auto y = x;
  auto statistics = ramp(2 * rows);
  for (auto _ : state) cpu::norm_forward(op, x, gain, gain, y, statistics);
  report(state, "elements/s", rows * cols);
}
BENCHMARK(layer_norm);

void softmax(benchmark::State& state) {
  const auto x = ramp(cols * cols);
  auto y = x;
  for (auto _ : state) cpu::softmax_forward({cols, cols, true}, 0.125, true, x, y);
  report(state, "elements/s", cols * cols);
}
BENCHMARK(softmax);

void dropout_mask(benchmark::State& state) {
  std::vector<std::uint8_t> mask(rows * cols);
  for (auto _ : state) cpu::dropout_mask(rows, cols, 0.1, {1, 2, 0, 0, cols}, mask);
  report(state, "elements/s", rows * cols);
}
BENCHMARK(dropout_mask);

}  // namespace
