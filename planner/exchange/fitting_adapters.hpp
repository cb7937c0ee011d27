// Adapters that a file asks for, as far as the model's layers may have them here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "costmodel/model/model_spec.hpp"
#include "planner/exchange/imported_job.hpp"

namespace planner {

// Whether the job has training.fine_tuning.targets.
bool has_targets(const ImportedJob& job);

// Adds to a list of targets what a framework calls so: "q", "k" and "v" for "qkv_proj"; false where
// no projection of ours is.
bool add_projection(std::string_view module, costmodel::Value& targets);

// "q_proj" and "v_proj" of ".*self_attn\.(q|v)_proj": alternatives, or the name before "_proj".
std::vector<std::string> projections_in(const std::string& pattern);

// Takes from training.fine_tuning.targets what the model has no adapters for: experts, unless the
// job's stack has adapters of those, the delta net or scan of a hybrid, the queries, keys and
// values of latent attention. What is taken is among what is left out. A projection that the file
// lists by name (PEFT's target_modules) and that such a layer does not have was none of its
// adapters anyway.
void fit_adapters(ImportedJob& job, const costmodel::ModelSpec& model);

}  // namespace planner
