// What of a model is trained when only adapters are.
#pragma once

#include <cstdint>

#include "costmodel/model/model_spec.hpp"
#include "costmodel/plan/fine_tuning.hpp"

namespace costmodel {

// The whole matrix of a projection y = W x, W[n, k].
struct ProjectionSize {
  std::int64_t n = 0, k = 0;
};
ProjectionSize projection_size(const ModelSpec& model, AdapterTarget target);

// Adapters' parameters: rank (n + k) for each projection that has one, in every layer
// (arXiv:2106.09685, section 4.1); joint ones have the k of their product once. Of pretraining and
// full fine-tuning, all of the model's.
double trained_parameters(const ModelSpec& model, const FineTuning& tuning);

// Parameters of towers and projectors that are not.
double frozen_parameters(const ModelSpec& model, const FineTuning& tuning);

}  // namespace costmodel
