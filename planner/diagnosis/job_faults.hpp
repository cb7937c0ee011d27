// The job changed in one respect: what each fault makes of it, in several sizes where it has one.
#pragma once

#include <string>
#include <vector>

#include "costmodel/base/units.hpp"
#include "costmodel/model/model_spec.hpp"
#include "planner/diagnosis/job_settings.hpp"

namespace planner {

// The job with the fault in one size: "one node computes 1.35 times slower".
struct Variant {
  std::string text;
  Job job;
  double size = 0;             // of variants in order; 0: it has none
  const char* form = nullptr;  // the text with a place for the size
};

// The job as configured, and what variants are made from.
struct Suspect {
  const Job& job;
  const costmodel::ModelSpec& model;
  costmodel::Seconds iteration;  // predicted
  double bubble = 0;             // likewise, Estimate::bubble_fraction
};

namespace faults {

using Variants = std::vector<Variant>;

// The share of iterations that take much longer in a job that pauses.
inline constexpr double often_slow = 0.1;

// Equally likely; empty: cannot be.
Variants unchanged(const Suspect& s);
Variants slow_node(const Suspect& s);
Variants slow_devices(const Suspect& s);
Variants micro_batch(const Suspect& s);
Variants global_batch(const Suspect& s);
Variants tp_across_nodes(const Suspect& s);
Variants no_gradient_overlap(const Suspect& s);
Variants no_parameter_overlap(const Suspect& s);
Variants no_tp_overlap(const Suspect& s);
Variants recomputation(const Suspect& s);
Variants eager_attention(const Suspect& s);
Variants not_narrow(const Suspect& s);
Variants slow_network(const Suspect& s);
Variants no_nvlink(const Suspect& s);
Variants data_stall(const Suspect& s);
Variants host_bound(const Suspect& s);
Variants allocator_retries(const Suspect& s);
Variants checkpoint_writing(const Suspect& s);
Variants growth(const Suspect& s);
Variants full_precision(const Suspect& s);
Variants zero_stage(const Suspect& s);
Variants offload(const Suspect& s);
Variants expert_imbalance(const Suspect& s);
Variants expert_capacity(const Suspect& s);
Variants dispatcher(const Suspect& s);
Variants few_micro_batches(const Suspect& s);
Variants not_compiled(const Suspect& s);

}  // namespace faults

}  // namespace planner
