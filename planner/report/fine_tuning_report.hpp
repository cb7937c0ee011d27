// What reports say of a fine-tuning: its method, what is trained, and what the frozen base takes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "costmodel/estimate/estimate.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/report/explain_stages.hpp"

namespace planner {

// ", LoRA r 16 on q, k, v, o", ", full fine-tuning"; empty for pretraining.
std::string method_text(const costmodel::FineTuning& tuning);

std::vector<std::string_view> target_names(const costmodel::FineTuning& tuning);

// "62.59 M parameters, 0.48 % of 13.02 B; the base in nf4 (4.127 bits)"; empty without adapters.
std::string trained_text(const costmodel::Estimate& estimate, const costmodel::Scenario& scenario);

struct FrozenBase {
  double bits = 0;                    // of a value of its projections, scales included
  costmodel::Bytes held;              // on a device of the first stage; with ZeRO-3 its shard
  costmodel::Bytes adapters;          // weights, gradients and states there
  costmodel::Seconds dequantisation;  // of a micro-batch on the first stage, all passes
};
// Of a plan with adapters whose stages are alike.
FrozenBase frozen_base(const costmodel::Estimate& estimate, const costmodel::Scenario& scenario,
                       costmodel::Evaluator& evaluator);

// The rows of `explain`; none without adapters.
std::vector<Explained> explained_fine_tuning(const costmodel::Estimate& estimate,
                                             const costmodel::Scenario& scenario,
                                             costmodel::Evaluator& evaluator);

}  // namespace planner
