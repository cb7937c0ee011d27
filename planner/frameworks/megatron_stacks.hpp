// The arguments of Megatron-LM's pretrain_t5.py, which gpt models have not: an encoder and a
// decoder, their sequences, and the pipeline rank where one passes to the other.
#pragma once

#include "planner/frameworks/import_megatron.hpp"

namespace planner {

// Whether a decoder of its own is among the arguments. A log of any model has --encoder-num-layers
// and --encoder-seq-length, which then are --num-layers and --seq-length.
bool has_two_stacks(const MegatronArguments& arguments);

// Each throws costmodel::ConfigError as import_megatron(), and does nothing without two stacks.
void read_stacks_model(MegatronImport& in);
void read_stacks_training(MegatronImport& in);
// --pipeline-model-parallel-split-rank, which core 0.9 calls deprecated, or in its place
// --encoder-pipeline-model-parallel-size, ranks beyond those of --pipeline-model-parallel-size,
// which core 0.14 has no more (megatron/training/arguments.py).
void read_stacks_plan(MegatronImport& in);

}  // namespace planner
