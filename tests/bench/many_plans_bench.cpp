// Different plans of one scenario by arrays, on one thread: what a plan that breaks a rule takes,
// and one that breaks none.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <vector>

#include "planner/search/many_plans.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace {

using Values = std::vector<std::int64_t>;

struct Key {
  const char* name;
  Values values;
};

// All combinations of the values; the share of valid plans and plans a second are counters.
void evaluate_grid(benchmark::State& state, const std::vector<Key>& keys) {
  std::vector<Values> columns(keys.size());
  std::size_t count = 1;
  for (const Key& key : keys) count *= key.values.size();
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t rest = i;
    for (std::size_t k = 0; k < keys.size(); ++k) {
      columns[k].push_back(keys[k].values[rest % keys[k].values.size()]);
      rest /= keys[k].values.size();
    }
  }
  std::vector<planner::PlanColumn> plans;
  for (std::size_t k = 0; k < keys.size(); ++k) plans.push_back({keys[k].name, columns[k]});
  const auto scenario = scenarios::read(
      "model: gpt3-13b\ncluster: {base: dgx-a100, devices: 128}\n"
      "training: {global_batch: 1024, sequence: 2048}\n");
  std::size_t valid = 0;
  for (auto _ : state) {
    const auto all = planner::evaluate_many(scenario, plans, 1);
    valid = 0;
    for (const std::string& error : all.errors) valid += error.empty() ? 1 : 0;
  }
  state.counters["valid"] = static_cast<double>(valid) / static_cast<double>(count);
  state.counters["plans"] =
      benchmark::Counter(static_cast<double>(count), benchmark::Counter::kIsIterationInvariantRate);
}

void many_plans_mostly_broken(benchmark::State& state) {
  evaluate_grid(state, {{"tp", {1, 2, 4, 8}},
                        {"pp", {1, 2, 4, 5, 8, 10}},
                        {"micro_batch", {1, 2, 4, 8}},
                        {"zero", {0, 1, 2, 3}},
                        {"sequence_parallel", {0, 1}},
                        {"dp_replicate", {1, 2, 4}},
                        {"vpp", {1, 2, 4, 5}},
                        {"cp", {1, 2}}});
}
BENCHMARK(many_plans_mostly_broken)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();

void many_plans_valid(benchmark::State& state) {
  evaluate_grid(state, {{"tp", {1, 2, 4, 8}},
                        {"pp", {1, 2, 4, 8}},
                        {"micro_batch", {1, 2, 4, 8}},
                        {"zero", {0, 1, 2, 3}},
                        {"sequence_parallel", {0, 1}},
                        {"cp", {1, 2, 4}}});
}
BENCHMARK(many_plans_valid)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();

}  // namespace
