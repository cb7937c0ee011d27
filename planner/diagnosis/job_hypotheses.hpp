// What may be wrong with a job that is slow: each hypothesis is the job changed in one respect,
// which the cost model prices again. No hypothesis holds a time of its own.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/base/units.hpp"
#include "costmodel/model/model_spec.hpp"
#include "planner/diagnosis/job_settings.hpp"

namespace planner {

// The job with the fault in one size: "one node computes 1.35 times slower".
struct Variant {
  std::string told;
  Job job;
};

// The job as configured, and what variants are made from.
struct Suspect {
  const Job& job;
  const costmodel::ModelSpec& model;
  costmodel::Seconds iteration;  // predicted
};

struct Hypothesis {
  std::string_view name;
  double weight;             // its prior is this over the sum of those that apply
  std::string_view because;  // the reason for the weight
  std::string_view key;  // of the setting at fault: a log that says it as configured rules it out
  std::string_view remedy;  // a sentence: what to look at, what to change
  std::vector<Variant> (*variants)(const Suspect& suspect);  // equally likely; empty: cannot be
};

// The first one is that nothing is wrong. All faults known here follow; that it is none of these is
// the diagnosis's own (job_diagnosis.hpp).
//
// The weights are judgement, stated with their reasons, and meant to be corrected: counts of causes
// over many slow jobs would replace them. They matter where the log cannot tell two causes apart.
std::span<const Hypothesis> hypotheses();

}  // namespace planner
