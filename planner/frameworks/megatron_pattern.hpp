// Two small languages in Megatron-LM's arguments: which layers have experts, and which layers each
// pipeline stage holds.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace planner {

// The value of --moe-layer-freq for so many layers: N (one layer in N, the first included), or a
// Python expression of lists such as "([0]*3+[1]*58)". Nothing for any other text, or another
// number of layers.
std::optional<std::vector<bool>> layers_with_experts(const std::string& text, int layers);

// The decoder layers of each cell of --pipeline-model-parallel-layout: "Et*2|t*3|(t|)*2t*2,mL" has
// E the embedding, t a layer, m a layer of multi-token prediction, L the loss, '*' a number of
// times, '|' between cells (megatron/core/transformer/pipeline_parallel_layer_layout.py). Nothing
// for any other text, and more than 100,000 letters.
std::optional<std::vector<int>> layers_of_layout(const std::string& text);

}  // namespace planner
