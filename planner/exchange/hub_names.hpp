// Models by the names that hubs, folders and recipes have for them.
#pragma once

#include <string>
#include <vector>

#include "planner/exchange/imported_job.hpp"

namespace planner {

// Keeps the name of a model on a hub, or of its folder ("Qwen/Qwen2.5-7B-Instruct"), as a recipe's;
// one whose sizes are those of a model that is shipped under another name becomes that, with a
// note.
void name_model(ImportedJob& job, std::string name);

// Names the model of ours, and the number of devices, that the nearest recipe with one has in its
// name ("llama31_405b_pretrain_256gpu_h100_bf16_config": llama-3.1-405b, 256), where the file has
// no other; nothing where there is none. A name may begin with the model's, or have it, size and
// all, further on ("Skywork-Reward-V2-Qwen3-8B").
void set_model_of_recipe(ImportedJob& job, const std::vector<std::string>& models);

}  // namespace planner
