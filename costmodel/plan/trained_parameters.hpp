// What of a model is trained when only adapters are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "costmodel/model/model_spec.hpp"
#include "costmodel/plan/fine_tuning.hpp"

namespace costmodel {

// The full matrix of a projection y = W x, W[n, k].
struct ProjectionSize {
  std::int64_t n = 0, k = 0;
};
ProjectionSize projection_size(const ModelSpec& model, AdapterTarget target);

// Whether some layer has a projection that may have an adapter: of attention over keys, or of an
// MLP. What keeps a state (a scan, a delta net) has none.
bool adapts_layers(const ModelSpec& model);
// The projections that may have one, as bits of AdapterTarget: not those of experts, nor the
// queries, keys and values of latent attention, which come by products of their own.
unsigned adapter_targets(const ModelSpec& model);
std::vector<std::string> names_of_targets(unsigned targets);

// Adapters' parameters: rank (n + k) for each projection that has one, in every layer that has it
// (arXiv:2106.09685, section 4.1); joint ones have the k of their product once. Of pretraining and
// full fine-tuning, all of the model's.
double trained_parameters(const ModelSpec& model, const FineTuning& tuning);

// Parameters of towers and projectors that are not.
double frozen_parameters(const ModelSpec& model, const FineTuning& tuning);

}  // namespace costmodel
