// The speeds that Shardplan promises: one evaluation, one simulation, one search. Each case is made
// once and called as often as wanted.
#pragma once

#include <string>
#include <vector>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/schedule/simulator.hpp"
#include "planner/search/grid_search.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace planning_cases {

// All of the memory may be used, as when the counts were first recorded: what `plan` leaves free
// changes how much is looked at.
inline costmodel::Scenario scenario(const std::string& model, int devices) {
  const std::string n = std::to_string(devices);
  return scenarios::read("model: " + model + "\ncluster: {base: selene, devices: " + n +
                         "}\ntraining: {global_batch: " + n +
                         ", sequence: 2048, stack: megatron-core-2026}\n"
                         "search: {memory_margin: 0}\n");
}

// Bound, memory and volumes of one plan of GPT-3 175B, layer prices cached: p = 8, v chunks.
class Evaluation {
 public:
  explicit Evaluation(int v)
      : s_(scenario("gpt3-175b", 64)), evaluator_(s_.model, s_.cluster, s_.training) {
    plan_.tp = 8;
    plan_.pp = 8;
    plan_.vpp = v;
    plan_.schedule =
        v > 1 ? costmodel::ScheduleKind::interleaved : costmodel::ScheduleKind::one_f_one_b;
    plan_.sequence_parallel = true;
    evaluator_.cost(plan_);
  }
  double operator()() { return evaluator_.cost(plan_).bound.iteration.value; }

 private:
  costmodel::Scenario s_;
  costmodel::Evaluator evaluator_;
  costmodel::ParallelPlan plan_;
};

// 1F1B of p ranks and m micro-batches: the program is compiled once, as in the search.
class Simulation {
 public:
  Simulation(int p, int m)
      : program_(costmodel::compile(
            costmodel::generate(costmodel::ScheduleKind::one_f_one_b, p, 1, m))) {
    times_.forward.assign(static_cast<std::size_t>(p), costmodel::Seconds(0.01));
    times_.backward.assign(static_cast<std::size_t>(p), costmodel::Seconds(0.02));
    times_.transfer = costmodel::Seconds(0.0005);
  }
  double operator()() { return simulate_makespan(program_, times_, scratch_).value; }

 private:
  costmodel::SimulationProgram program_;
  costmodel::PipelineTimes times_;
  std::vector<double> scratch_;
};

// The whole search, caches cold.
class Search {
 public:
  Search(const std::string& model, int devices) : s_(scenario(model, devices)) {}
  planner::SearchResult operator()() const {
    costmodel::Evaluator evaluator(s_.model, s_.cluster, s_.training);
    return planner::search(s_, evaluator);
  }

 private:
  costmodel::Scenario s_;
};

}  // namespace planning_cases
