// Plans of small models, the Megatron-LM arguments they export to, and the reasons for refusing
// others.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <vector>

#include "costmodel/base/error.hpp"
#include "planner/frameworks/export_megatron.hpp"
#include "planner/frameworks/import_megatron.hpp"
#include "planner/frameworks/megatron_script.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace megatron {

using costmodel::ParallelPlan;
using costmodel::Recomputation;
using costmodel::Scenario;
using costmodel::ScheduleKind;
using Strings = std::vector<std::string>;

inline Scenario scenario_of(const std::string& model,
                            const std::string& stack = "megatron-core-2026") {
  const std::string text = fmt::format(
      "{{model: {}, cluster: {{base: dgx-h100, devices: 16}},\n"
      " training: {{global_batch: 64, sequence: 128, stack: {}}},\n plan: {{tp: 2, pp: 2}}}}",
      model, stack);
  return scenarios::read(text);
}

inline Scenario tiny_llama() { return scenario_of("{base: llama-tiny, layers: 8}"); }

// t 2 · p 2 · d 4, 16 micro-batches.
inline ParallelPlan small_plan() { return {.tp = 2, .pp = 2, .dp = 4}; }

inline planner::ImportedJob of_script(const std::string& text) {
  return planner::import_megatron(planner::read_megatron_script(text, "x.sh"));
}

inline bool has(const Strings& list, const std::string& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

inline std::string refusal(const Scenario& scenario, const ParallelPlan& plan) {
  try {
    planner::export_megatron(scenario, plan);
  } catch (const costmodel::ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

using Change = std::function<void(Scenario&, ParallelPlan&)>;

// What one change of a good plan is refused for.
inline std::string refused_for(const Change& change) {
  Scenario scenario = tiny_llama();
  ParallelPlan plan = small_plan();
  change(scenario, plan);
  return refusal(scenario, plan);
}

inline planner::MegatronExport exported(const Change& change) {
  Scenario scenario = tiny_llama();
  ParallelPlan plan = small_plan();
  change(scenario, plan);
  return planner::export_megatron(scenario, plan);
}

// All plans of a few values a key, valid or not.
inline void for_each_plan(const std::function<void(const ParallelPlan&)>& visit) {
  const std::array<costmodel::Recompute, 4> recomputes{{{Recomputation::none, 0},
                                                        {Recomputation::selective, 0},
                                                        {Recomputation::full, 0},
                                                        {Recomputation::full, 1}}};
  for (const int tp : {1, 2, 4, 8}) {
    for (const int pp : {1, 2, 4}) {
      for (const int vpp : {1, 2}) {
        for (const auto& recompute : recomputes) {
          for (const int zero : {0, 1, 2, 3}) {
            for (const bool sp : {false, true}) {
              ParallelPlan plan{.tp = tp, .pp = pp, .dp = 16 / (tp * pp), .vpp = vpp};
              if (tp * pp > 16) continue;
              plan.sequence_parallel = sp;
              plan.recompute = recompute;
              plan.zero = zero;
              if (vpp > 1) plan.schedule = ScheduleKind::interleaved;
              visit(plan);
            }
          }
        }
      }
    }
  }
}

}  // namespace megatron
