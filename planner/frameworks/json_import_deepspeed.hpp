// A ds_config.json as a scenario: what it knows of the training and the plan. Keys as in
// json_deepspeed.
#pragma once

#include <string>

#include "planner/exchange/imported_job.hpp"

namespace planner {

bool holds_deepspeed(const std::string& text);

// Of a launch script that brings the file, also what its launch and comments say: the devices
// (--num_nodes, --num_gpus), num_stages=, ep_size=, sequence_parallel_size= and
// Megatron-DeepSpeed's arguments. Model, cluster and sequence are missing: the file does not say
// them; so is a value "auto", which the caller of DeepSpeed fills in. Throws costmodel::ConfigError
// for what is not JSON, and for sizes that are none, with the place.
ImportedJob import_deepspeed(const std::string& text, const std::string& file);

}  // namespace planner
