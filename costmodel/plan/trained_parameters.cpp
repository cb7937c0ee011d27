#include "costmodel/plan/trained_parameters.hpp"

#include "costmodel/model/parameter_count.hpp"
#include "costmodel/model/tower.hpp"

namespace costmodel {

ProjectionSize projection_size(const ModelSpec& model, AdapterTarget target) {
  const std::int64_t h = model.hidden, kv = model.kv_heads * model.head_dim;
  switch (target) {
    case AdapterTarget::q: return {model.heads * model.head_dim, h};
    case AdapterTarget::k: return {kv, h};
    case AdapterTarget::v: return {model.kv_heads * model.value_dim(), h};
    case AdapterTarget::o: return {h, model.heads * model.value_dim()};
    case AdapterTarget::gate:
    case AdapterTarget::up: return {model.ffn_hidden, h};
    case AdapterTarget::down: return {h, model.ffn_hidden};
  }
  return {};
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
  // Of an MLP's, how often all layers have it at its width: dense, each expert's, shared ones'.
  const std::int64_t sparse = model.moe_layers(0, model.layers);
  std::int64_t sides = 0, mlps = 0;
  unsigned read = 0;  // products whose input has a matrix already
  for (std::size_t i = 0; i < adapter_target_names.size(); ++i) {
    const auto target = static_cast<AdapterTarget>(i);
    if (!tuning.has(target)) continue;
    if ((attention_targets & bit_of(target)) == 0 && sparse > 0) {
      mlps += (model.layers - sparse) * (model.hidden + model.ffn_hidden) +
              sparse * model.experts * (model.expert_width() + model.expert_ffn_hidden) +
              (model.shared_experts > 0 ? sparse * (model.hidden + model.shared_ffn()) : 0);
      continue;
    }
    const ProjectionSize size = projection_size(model, target);
    sides += size.n;
    if ((read & bit_of(target)) == 0) sides += size.k;
    for (const unsigned product : joint_targets) {
      if (tuning.joint && (product & bit_of(target)) != 0) read |= product;
    }
  }
  return static_cast<double>(tuning.rank * (sides * model.layers + mlps));
}

}  // namespace costmodel
