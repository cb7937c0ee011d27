#include "costmodel/plan/trained_parameters.hpp"

#include "costmodel/model/parameter_count.hpp"
#include "costmodel/model/tower.hpp"

namespace costmodel {

ProjectionSize projection_size(const ModelSpec& model, AdapterTarget target) {
  const std::int64_t h = model.hidden, kv = model.kv_heads * model.head_dim;
  switch (target) {
    // A gate of attention is projected with the queries (Qwen3-Next).
    case AdapterTarget::q: return {(model.attention_gate ? 2 : 1) * model.query_size(), h};
    case AdapterTarget::k: return {kv, h};
    case AdapterTarget::v: return {model.kv_heads * model.value_dim(), h};
    case AdapterTarget::o: return {h, model.heads * model.value_dim()};
    case AdapterTarget::gate:
    case AdapterTarget::up: return {model.ffn_hidden, h};
    case AdapterTarget::down: return {h, model.ffn_hidden};
  }
  return {};
}

namespace {

bool has_product(const Block& block, AdapterTarget target) {
  if ((bit_of(target) & attention_targets) == 0) return block.feed_forward == FeedForward::dense;
  switch (block.mixer) {
    case Mixer::attention:
    case Mixer::window:
    case Mixer::chunked:
    case Mixer::sparse:
    case Mixer::parallel: return true;
    default: return false;
  }
}

std::int64_t layers_with(const ModelSpec& model, AdapterTarget target) {
  std::int64_t count = 0;
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    count += has_product(model.block_at(layer), target) ? 1 : 0;
  return count;
}

}  // namespace

bool adapts_layers(const ModelSpec& model) {
  return layers_with(model, AdapterTarget::o) > 0 || layers_with(model, AdapterTarget::up) > 0;
}

unsigned adapter_targets(const ModelSpec& model) {
  unsigned all = model.latent_attention() ? bit_of(AdapterTarget::o) : attention_targets;
  all |= bit_of(AdapterTarget::up) | bit_of(AdapterTarget::down);
  return model.gated_mlp ? all | bit_of(AdapterTarget::gate) : all;
}

std::vector<std::string> names_of_targets(unsigned targets) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < adapter_target_names.size(); ++i) {
    if ((targets & bit_of(static_cast<AdapterTarget>(i))) != 0)
      names.emplace_back(adapter_target_names[i]);
  }
  return names;
}

double frozen_parameters(const ModelSpec& model, const FineTuning& tuning) {
  double frozen = 0;
  for (const TowerSpec& tower : towers_of(model)) {
    const double projector = projector_parameters(tower);
    if (!tuning.trains(ModelPiece::projector)) frozen += projector;
    if (!tuning.trains(static_cast<ModelPiece>(tower.input)))
      frozen += tower_parameters(tower) - projector;
  }
  return frozen;
}

double trained_parameters(const ModelSpec& model, const FineTuning& tuning) {
  if (!tuning.adapts()) return parameter_count(model) - frozen_parameters(model, tuning);
  const std::int64_t sparse = model.moe_layers(0, model.layers);
  std::int64_t sides = 0;  // of all layers
  unsigned read = 0;       // products whose input has a matrix already
  for (std::size_t i = 0; i < adapter_target_names.size(); ++i) {
    const auto target = static_cast<AdapterTarget>(i);
    if (!tuning.has(target)) continue;
    const std::int64_t layers = layers_with(model, target);
    if ((attention_targets & bit_of(target)) == 0 && sparse > 0) {
      sides += layers * (model.hidden + model.ffn_hidden) +
               sparse * model.experts * (model.expert_width() + model.expert_ffn_hidden) +
               (model.shared_experts > 0 ? sparse * (model.hidden + model.shared_ffn()) : 0);
      continue;
    }
    const ProjectionSize size = projection_size(model, target);
    sides += layers * size.n;
    if ((read & bit_of(target)) == 0) sides += layers * size.k;
    for (const unsigned product : joint_targets) {
      if (tuning.joint && (product & bit_of(target)) != 0) read |= product;
    }
  }
  return static_cast<double>(tuning.rank * sides);
}

}  // namespace costmodel
