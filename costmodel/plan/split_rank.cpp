#include "costmodel/plan/split_rank.hpp"

#include <cstddef>
#include <iterator>

namespace costmodel {

std::vector<int> split_layers(const ModelSpec& model, int pp, int split_rank) {
  if (split_rank < 1 || split_rank >= pp) return {};
  const std::int64_t before = split_rank, after = pp - split_rank;
  if (model.encoder_layers % before != 0 || model.decoder_layers % after != 0) return {};
  std::vector<int> layers(static_cast<std::size_t>(pp),
                          static_cast<int>(model.encoder_layers / before));
  for (std::size_t rank = static_cast<std::size_t>(split_rank); rank < layers.size(); ++rank)
    layers[rank] = static_cast<int>(model.decoder_layers / after);
  return layers;
}

int split_rank_of(const ParallelPlan& plan, const ModelSpec& model) {
  if (!model.encoder_decoder() || plan.vpp > 1 || plan.pipelines() > 1) return 0;
  const bool even = plan.stage_layers.empty();
  if (even ? model.layers % plan.pp != 0 : std::ssize(plan.stage_layers) != plan.pp) return 0;
  const auto layers_of = [&](int rank) {
    return even ? model.layers / plan.pp : plan.stage_layers[static_cast<std::size_t>(rank)];
  };
  std::int64_t first = 0;
  for (int rank = 0; rank < plan.pp; ++rank) {
    if (first == model.encoder_layers) {
      const std::vector<int> split = split_layers(model, plan.pp, rank);
      bool same = !split.empty();
      for (int k = 0; same && k < plan.pp; ++k)
        same = split[static_cast<std::size_t>(k)] == layers_of(k);
      return same ? rank : 0;
    }
    first += layers_of(rank);
  }
  return 0;
}

}  // namespace costmodel
