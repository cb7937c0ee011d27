// Speed at which initial weights are drawn: one number at a time, and a tensor on 1 and more
// threads.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "runtime/cpu/random.hpp"
#include "runtime/training/parameters.hpp"

namespace {

void one_normal(benchmark::State& state) {
  std::uint64_t at = 0;
  for (auto _ : state) benchmark::DoNotOptimize(runtime::cpu::normal(1, 2, at++));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(one_normal);

void initial_weights(benchmark::State& state) {
  constexpr std::int64_t rows = 4096, cols = 1024;
  runtime::LayerParameters layer;
  layer.tensors.push_back({.name = "weight",
                           .rows = rows,
                           .cols = cols,
                           .global_cols = cols,
                           .columns = {{0, cols, 0}},
                           .initial = runtime::Initial::normal,
                           .spread = 0.02});
  layer.size = layer.tensors.front().size();
  std::vector<float> values(layer.size);
  for (auto _ : state) runtime::initialise(layer, 1, values, static_cast<int>(state.range(0)));
  state.SetItemsProcessed(state.iterations() * rows * cols);
}
BENCHMARK(initial_weights)
    ->ArgName("threads")
    ->Arg(1)
    ->Arg(static_cast<std::int64_t>(std::max(2U, std::thread::hardware_concurrency())))
    ->UseRealTime()
    ->MeasureProcessCPUTime();

}  // namespace
