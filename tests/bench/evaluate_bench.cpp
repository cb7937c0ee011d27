// The three speeds that Shardplan promises: one evaluation, one simulation, one search.
#include <benchmark/benchmark.h>

#include "costmodel/schedule/simulator.hpp"
#include "planner/search/grid_search.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace {

const char* const gpt3_64 =
    "model: gpt3-175b\ncluster: {base: selene, devices: 64}\n"
    "training: {global_batch: 64, sequence: 2048, stack: megatron-core-2026}\n";
const char* const gpt3_4096 =
    "model: gpt3-175b\ncluster: {base: selene, devices: 4096}\n"
    "training: {global_batch: 4096, sequence: 2048, stack: megatron-core-2026}\n";

const char* const trillion_100k =
    "model: megatron-1t\ncluster: {base: selene, devices: 100000}\n"
    "training: {global_batch: 100000, sequence: 2048, stack: megatron-core-2026}\n";

// Closed form, memory and volumes of one plan, layer prices cached: p = 8, as range(0) = v says
// interleaved or not.
void evaluate_one_plan(benchmark::State& state) {
  const auto s = scenarios::read(gpt3_64);
  costmodel::Evaluator evaluator(s.model, s.cluster, s.training);
  costmodel::ParallelPlan plan;
  plan.tp = 8;
  plan.pp = 8;
  plan.vpp = static_cast<int>(state.range(0));
  plan.schedule =
      plan.vpp > 1 ? costmodel::ScheduleKind::interleaved : costmodel::ScheduleKind::one_f_one_b;
  plan.sequence_parallel = true;
  for (auto _ : state) benchmark::DoNotOptimize(evaluator.cost(plan).lower_bound);
}
BENCHMARK(evaluate_one_plan)->Arg(1)->Arg(3);

// 1F1B, p = range(0), m = range(1): the program is compiled once, as in the search.
void simulate_1f1b(benchmark::State& state) {
  const auto p = static_cast<int>(state.range(0));
  const auto schedule = costmodel::generate(costmodel::ScheduleKind::one_f_one_b, p, 1,
                                            static_cast<int>(state.range(1)));
  const auto program = costmodel::compile(schedule);
  costmodel::PipelineTimes times;
  times.forward.assign(static_cast<std::size_t>(p), costmodel::Seconds(0.01));
  times.backward.assign(static_cast<std::size_t>(p), costmodel::Seconds(0.02));
  times.transfer = costmodel::Seconds(0.0005);
  std::vector<double> scratch;
  for (auto _ : state) benchmark::DoNotOptimize(simulate_makespan(program, times, scratch));
}
BENCHMARK(simulate_1f1b)->Args({8, 64})->Args({64, 512});

// The whole search for GPT-3 175B on 4,096 devices, caches cold.
void search_gpt3_on_4096(benchmark::State& state) {
  const auto s = scenarios::read(gpt3_4096);
  for (auto _ : state) {
    costmodel::Evaluator evaluator(s.model, s.cluster, s.training);
    benchmark::DoNotOptimize(planner::search(s, evaluator).lower_bound);
  }
}
BENCHMARK(search_gpt3_on_4096)->Unit(benchmark::kMillisecond);

// The same for a model of 10^12 parameters on 100,000 devices.
void search_1t_on_100000(benchmark::State& state) {
  const auto s = scenarios::read(trillion_100k);
  for (auto _ : state) {
    costmodel::Evaluator evaluator(s.model, s.cluster, s.training);
    const auto found = planner::search(s, evaluator);
    benchmark::DoNotOptimize(found.lower_bound);
    state.counters["plans"] = static_cast<double>(found.statistics.configurations);
    state.counters["simulated"] = static_cast<double>(found.statistics.simulated);
  }
}
BENCHMARK(search_1t_on_100000)->Unit(benchmark::kMillisecond);

}  // namespace
