// Arguments of Megatron-DeepSpeed (deepspeedai's and BigScience's forks) in Megatron-LM's words.
#pragma once

#include "planner/frameworks/megatron_arguments.hpp"

namespace planner {

// Whether DeepSpeed's engine runs the job, and not Megatron-LM's own loop.
bool is_run_by_deepspeed(const MegatronArguments& arguments);

// The forks' names become Megatron-LM's own, as configs/frameworks/megatron.yaml has them. A job
// that DeepSpeed runs has the forks' layers and their stack, unless it names another one.
MegatronArguments in_megatron_words(MegatronArguments arguments);

}  // namespace planner
