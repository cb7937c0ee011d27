// Where a pipeline's ranks pass from an encoder to its decoder, as Megatron-LM says it
// (--pipeline-model-parallel-split-rank; core 0.9 has --encoder-pipeline-model-parallel-size in its
// place and calls it deprecated, core 0.14 has neither: its CHANGELOG.md, "Remove Encoder PP
// related Functions").
#pragma once

#include <vector>

#include "costmodel/model/model_spec.hpp"
#include "costmodel/plan/parallel_plan.hpp"

namespace costmodel {

// The layers of each of `pp` stages: ranks below `split_rank` take equal parts of the encoder, the
// others equal parts of the decoder (megatron/model/transformer.py, _get_num_layers, which asserts
// that both divide). Empty where they do not, or where one of the two has no rank.
std::vector<int> split_layers(const ModelSpec& model, int pp, int split_rank);

// The rank that such a plan splits at; 0: of none, for a plan without a pipeline, a model of one
// stack, a stage with layers of both, or stages of one stack that are not alike.
int split_rank_of(const ParallelPlan& plan, const ModelSpec& model);

}  // namespace costmodel
