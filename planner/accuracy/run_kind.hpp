// The features of a measured run by which its errors are grouped.
#pragma once

#include <cstdint>
#include <string>

#include "costmodel/scenario/run_traits.hpp"
#include "costmodel/scenario/scenario.hpp"

namespace planner {

struct RunFacts {
  costmodel::RunTraits traits;  // by which its interval is chosen
  std::string stack;
  std::string framework;  // the stack's, without libraries: "torchtitan"
  std::string device;
  std::string precision;
  std::string parallelism;  // "tp+pp+dp", "fsdp", "1 device"; "" when the plan is unknown
  std::string setting;      // device, framework and model family: "gb200, NeMo, llama-3"
  std::string plan;         // complete: equal for equal plans
  std::string plan_text;    // for people: "t 8 · p 16 · d 12 · b 1 · v 2 · interleaved"
  std::string workload;     // for people: "l96 h12288 on 1,024 x a100, batch 1,536 x 2,048"
  // Complete model, software, cluster and batch: runs with equal keys differ only in their plans.
  std::string workload_key;
  std::int64_t devices = 0;
  bool plan_assumed = false;  // the source omits part of the plan: a key is `auto`
  double pair_spread = 0;     // of log(measured / predicted) between plans, see ErrorBand
};

RunFacts facts_of(const costmodel::Scenario& scenario);
void add_plan(RunFacts& facts, const costmodel::ParallelPlan& plan);

// The axes above 1, in the order tp, pp, dp; dp with ZeRO-3 is "fsdp".
std::string parallelism_of(const costmodel::ParallelPlan& plan);

}  // namespace planner
