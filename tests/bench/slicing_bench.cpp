// Stage slicing by size, compared with Alpa's recurrence as in its paper.
#include <benchmark/benchmark.h>
#include <sys/resource.h>
#include <time.h>

#include "tests/bench/alpa_recurrence.hpp"
#include "tests/bench/slicing_instance.hpp"

namespace {

planner::SlicingProblem problem_of(const benchmark::State& state) {
  return make_problem({.layers = static_cast<int>(state.range(0)),
                       .devices = static_cast<int>(state.range(1)),
                       .noise = static_cast<double>(state.range(2)) / 100});
}

// The most memory this process has had, with the problem that was made for it.
double peak_mib() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  return static_cast<double>(use.ru_maxrss) / 1024;
}

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void count(benchmark::State& state, const planner::Slicing& found) {
  state.counters["stages"] = static_cast<double>(found.stages.size());
  state.counters["intervals"] = static_cast<double>(found.statistics.intervals);
  state.counters["programs"] = static_cast<double>(found.statistics.programs);
  state.counters["labels"] = static_cast<double>(found.statistics.labels);
  if (!found.stages.empty())
    state.counters["gap_pct"] = 100 * (found.objective / found.lower_bound - 1);
  state.counters["peak_mib"] = peak_mib();
}

// Layers, devices, noise in per cent (0: equal layers).
void slice(benchmark::State& state) {
  const auto problem = problem_of(state);
  planner::Slicing found;
  for (auto _ : state) {
    found = best_slicing(problem);
    benchmark::DoNotOptimize(found.stages.data());
  }
  count(state, found);
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

// Over layers and devices, for the table of docs/scaling.md: once each, with a minute at most.
void slice_large(benchmark::State& state) {
  constexpr double most_seconds = 60;
  const auto problem = problem_of(state);
  planner::Slicing found;
  for (auto _ : state) {
    const double start = cpu_seconds();
    found = best_slicing(problem, [&] { return cpu_seconds() - start > most_seconds; });
  }
  count(state, found);
}
void sizes(benchmark::internal::Benchmark* bench) {
  // Beyond that the lists of options of the made-up instance take more than 2 GiB.
  constexpr std::int64_t most_options = std::int64_t{1} << 25;
  for (const std::int64_t layers : {10, 32, 100, 320, 1000}) {
    for (std::int64_t devices = 8; devices <= 131'072; devices *= 4)
      if (layers * devices <= most_options) bench->Args({layers, devices, 0});
  }
  bench->Args({1000, 16'384, 0});
}
BENCHMARK(slice_large)->Unit(benchmark::kMillisecond)->Iterations(1)->Apply(sizes);

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
