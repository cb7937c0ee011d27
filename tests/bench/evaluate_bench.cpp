// The cases of planning_cases.hpp, timed.
#include <benchmark/benchmark.h>

#include "tests/bench/planning_cases.hpp"

namespace {

// v = range(0) chunks.
void evaluate_one_plan(benchmark::State& state) {
  planning_cases::Evaluation evaluate(static_cast<int>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(evaluate());
}
BENCHMARK(evaluate_one_plan)->Arg(1)->Arg(3);

// p = range(0), m = range(1).
void simulate_1f1b(benchmark::State& state) {
  planning_cases::Simulation simulate(static_cast<int>(state.range(0)),
                                      static_cast<int>(state.range(1)));
  for (auto _ : state) benchmark::DoNotOptimize(simulate());
}
BENCHMARK(simulate_1f1b)->Args({8, 64})->Args({64, 512});

void search_gpt3_on_4096(benchmark::State& state) {
  const planning_cases::Search search("gpt3-175b", 4096);
  for (auto _ : state) benchmark::DoNotOptimize(search().lower_bound);
}
BENCHMARK(search_gpt3_on_4096)->Unit(benchmark::kMillisecond);

// A model of 10^12 parameters.
void search_1t_on_100000(benchmark::State& state) {
  const planning_cases::Search search("megatron-1t", 100000);
  for (auto _ : state) {
    const auto found = search();
    benchmark::DoNotOptimize(found.lower_bound);
    state.counters["plans"] = static_cast<double>(found.statistics.configurations);
    state.counters["simulated"] = static_cast<double>(found.statistics.simulated);
  }
}
BENCHMARK(search_1t_on_100000)->Unit(benchmark::kMillisecond);

}  // namespace
