// What reports say of samples that are shorter than a sequence: how full sequences are, what is
// trained in a second, and what waiting for the longest costs.
#pragma once

#include <string>
#include <vector>

#include "costmodel/estimate/estimate.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/report/explain_stages.hpp"

namespace planner {

// Of a global batch, in the iteration's time.
double samples_per_s(const costmodel::Estimate& estimate, const costmodel::Scenario& scenario);

// "12.5 a sequence, 99.4 % filled: 61.2 samples/s, 39,800 of their tokens/s"; empty where every
// sequence is one full text.
std::string samples_text(const costmodel::Estimate& estimate, const costmodel::Scenario& scenario);

// What packing would bring padded samples; empty where they are packed, or cannot be.
std::string padding_sentence(const costmodel::Estimate& estimate,
                             const costmodel::Scenario& scenario);

// The rows of `explain`; none there.
std::vector<Explained> explained_packing(const costmodel::Estimate& estimate,
                                         const costmodel::Scenario& scenario);

}  // namespace planner
