// The training part of a verl job: the actor's update, from the overrides with which its script
// starts verl.trainer.main_ppo or verl.trainer.fsdp_sft_trainer.
#pragma once

#include <string>

#include "planner/exchange/imported_job.hpp"

namespace planner {

bool holds_verl(const std::string& text);

// Rollout, reward and reference are left out, with a note. An iteration is one update: a
// mini-batch of prompts with all their responses. Throws costmodel::ConfigError at the place of a
// value that cannot be read.
ImportedJob import_verl(const std::string& text, const std::string& file);

}  // namespace planner
