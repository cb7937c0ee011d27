// Programs that train with Megatron Core and have its arguments under names of their own:
// ms-swift's `megatron` commands, the YAML of NeMo 1 and LLaMA-Factory's of mcore_adapter. All
// become the arguments of Megatron-LM, read as such.
#pragma once

#include <string>

#include "planner/exchange/imported_job.hpp"

namespace planner {

// "megatron sft --model Qwen/Qwen3-8B --tensor_model_parallel_size 2": ms-swift brings the model.
bool holds_swift_megatron(const std::string& text);
ImportedJob import_swift_megatron(const std::string& text, const std::string& file);

// A YAML of NeMo 1's megatron_gpt_pretraining, with `trainer` and `model`.
bool holds_nemo_yaml(const std::string& text);
ImportedJob import_nemo_yaml(const std::string& text, const std::string& file);

// A YAML of LLaMA-Factory that is trained by mcore_adapter, with Megatron Core's arguments among
// the Trainer's; of the others this is not asked.
bool holds_factory_megatron(const std::string& text);
ImportedJob import_factory_megatron(const std::string& text, const std::string& file);

}  // namespace planner
