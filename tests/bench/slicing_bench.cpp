// Stage slicing by size, beside Alpa's recurrence as its paper writes it.
#include <benchmark/benchmark.h>

#include "tests/bench/alpa_recurrence.hpp"
#include "tests/bench/slicing_instance.hpp"

namespace {

planner::SlicingProblem problem_of(const benchmark::State& state) {
  return make_problem({.layers = static_cast<int>(state.range(0)),
                       .devices = static_cast<int>(state.range(1)),
                       .noise = static_cast<double>(state.range(2)) / 100});
}

// Layers, devices, noise in per cent (0: equal layers).
void slice(benchmark::State& state) {
  const auto problem = problem_of(state);
  planner::Slicing found;
  for (auto _ : state) {
    found = best_slicing(problem);
    benchmark::DoNotOptimize(found.objective);
  }
  state.counters["stages"] = static_cast<double>(found.stages.size());
  state.counters["intervals"] = static_cast<double>(found.statistics.intervals);
  state.counters["programs"] = static_cast<double>(found.statistics.programs);
  state.counters["labels"] = static_cast<double>(found.statistics.labels);
}
BENCHMARK(slice)
    ->Unit(benchmark::kMillisecond)
    ->Args({12, 16, 0})
    ->Args({12, 16, 2})
    ->Args({24, 32, 0})
    ->Args({24, 32, 2})
    ->Args({96, 64, 0})
    ->Args({96, 64, 2})
    ->Args({96, 512, 0})
    ->Args({96, 1024, 0})
    ->Args({96, 1024, 2});
// Apart, for it takes minutes: what is to come down.
BENCHMARK(slice)->Name("slice_large")->Unit(benchmark::kMillisecond)->Args({1000, 16384, 0});

// The whole of it where that is a matter of seconds.
void recurrence(benchmark::State& state) {
  const auto problem = problem_of(state);
  const AlpaRecurrence alpa(problem);
  for (auto _ : state) benchmark::DoNotOptimize(alpa.best());
  state.counters["candidates"] = static_cast<double>(alpa.candidates().size());
}
BENCHMARK(recurrence)
    ->Unit(benchmark::kMillisecond)
    ->Args({12, 16, 0})
    ->Args({12, 16, 2})
    ->Args({24, 32, 0});

// One of its passes, for the middle candidate; there are `candidates` of them at most.
void recurrence_pass(benchmark::State& state) {
  const auto problem = problem_of(state);
  const AlpaRecurrence alpa(problem);
  const double longest = alpa.candidates()[alpa.candidates().size() / 2];
  for (auto _ : state) benchmark::DoNotOptimize(alpa.pass(longest));
  state.counters["candidates"] = static_cast<double>(alpa.candidates().size());
}
BENCHMARK(recurrence_pass)->Unit(benchmark::kMillisecond)->Args({24, 32, 2})->Args({96, 64, 2});

}  // namespace
