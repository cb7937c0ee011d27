// Intra-operator sharding of a GPT stage: elimination compared with the integer program.
#include <benchmark/benchmark.h>

#include "planner/solvers/milp.hpp"
#include "planner/solvers/sharding_problem.hpp"
#include "tests/bench/stage_instance.hpp"

namespace {

planner::ShardingProblem problem_of(const benchmark::State& state) {
  return gpt_stage(static_cast<int>(state.range(0)), static_cast<int>(state.range(1)),
                   static_cast<int>(state.range(2)));
}

void report(benchmark::State& state, const planner::ShardingProblem& problem,
            const planner::Sharding& found) {
  double strategies = 0;
  for (const auto& choices : problem.nodes) strategies += static_cast<double>(choices.size());
  state.counters["nodes"] = static_cast<double>(problem.nodes.size());
  state.counters["strategies"] = strategies;
  state.counters["seconds"] = found.seconds;
  state.counters["gap_pct"] = 100 * (found.seconds / found.lower_bound - 1);
}

// Layers, mesh; memory binds.
void shard(benchmark::State& state) {
  const auto problem = problem_of(state);
  planner::Sharding found;
  for (auto _ : state) {
    found = best_sharding(problem);
    benchmark::DoNotOptimize(found.choice.data());
  }
  report(state, problem, found);
  state.counters["width"] = found.statistics.width;
  state.counters["prices"] = static_cast<double>(found.statistics.prices);
  state.counters["labels"] = static_cast<double>(found.statistics.labels);
}
BENCHMARK(shard)
    ->Unit(benchmark::kMillisecond)
    ->Args({1, 1, 8})
    ->Args({2, 1, 8})
    ->Args({12, 1, 8})
    ->Args({1, 2, 4})
    ->Args({12, 2, 4});
BENCHMARK(shard)->Name("shard_large")->Unit(benchmark::kMillisecond)->Args({96, 2, 4});

// By CBC, stopped after half a minute; apart, for it takes that.
void milp(benchmark::State& state) {
  const auto problem = problem_of(state);
  planner::Sharding found;
  for (auto _ : state) {
    found = planner::solve_milp(problem, 30);
    benchmark::DoNotOptimize(found.choice.data());
  }
  report(state, problem, found);
}
BENCHMARK(milp)
    ->Name("milp_large")
    ->Unit(benchmark::kMillisecond)
    ->Args({1, 1, 8})
    ->Args({2, 1, 8})
    ->Args({12, 1, 8})
    ->Args({12, 2, 4})
    ->Iterations(1);

}  // namespace
