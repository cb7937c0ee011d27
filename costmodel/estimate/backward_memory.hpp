// The fullest moment of a virtual stage's backward: working tensors come and go, kept activations
// are freed layer by layer, and in frameworks that free them with each step gradients appear.
#pragma once

#include <cstddef>

#include "costmodel/estimate/plan_inputs.hpp"

namespace costmodel {

// Bytes above everything that is held when the stage's last layer begins its backward.
struct StageMoment {
  Bytes activations;  // working tensors, less what the layers after had kept
  Bytes gradients;    // that did not exist when backward began
  Bytes buffers;      // of sharded parameters: gathered ones and unreduced gradients
  Bytes sum() const { return activations + gradients + buffers; }
};

// Where that is: the layer, and in which pass of it.
struct MomentPlace {
  LayerKind kind = LayerKind::block;
  bool again = false;     // recomputed
  bool backward = false;  // or forward
  bool after = false;     // all layers are done, and the gradients of the stage's ends are reduced
  StageMoment moment;
};

// Whether a plan's gradients are freed with the step (Optimizer.zero_grad(set_to_none=True)), and
// nothing else holds them, as the buckets of PyTorch's DDP do.
bool frees_gradients(const PlanInputs& in);

// Whether they appear in the only backward, so that they and all activations never exist together.
bool gradients_appear(const PlanInputs& in);

// Whether all layers are recomputed but for every second product (Footprint::kept_alternate). Their
// time is that of half of the layers.
bool keeps_alternate(const PlanInputs& in);

// Whether ZeRO-3 gathers a layer at a time, and embedding and head once an iteration, as one unit
// (FSDP's root). fullest_moment() then has the buffers of both.
bool gathers_by_unit(const PlanInputs& in);

// Calls `visit` for the layers of virtual stage k, the last first: the kind, whether recomputed,
// the layer, and how many there are.
template <class Visit>
void each_layer(const PlanInputs& in, std::size_t k, const Visit& visit) {
  const LayerPrices& f = in.layers;
  const LayerMix& mix = in.mixes()[k];
  const auto add = [&](LayerKind kind, const LayerCost& layer, bool again, int count) {
    if (count > 0) visit(kind, layer, again, count);
  };
  const auto begin = [&] {  // of the model, where the towers run before the embedding
    if (k != 0) return;
    add(LayerKind::embedding, *f.embedding, false, 1);
    for (std::size_t i = f.towers.size(); i-- > 0;)
      add(f.towers[i].kind, *f.towers[i].cost, f.towers[i].again, f.towers[i].number);
  };
  if (k == in.last_stage()) add(LayerKind::head, *f.head, false, 1);
  if (keeps_alternate(in)) {
    for (std::size_t i = f.count; i-- > 0;)
      add(f.kinds[i].kind, *f.kinds[i].again, true, f.kinds[i].number(mix));
    return begin();
  }
  for (std::size_t i = f.count; i-- > 0;) {
    const LayerPrices::Kind& kind = f.kinds[i];
    add(kind.kind, *kind.whole, false, kind.number(mix) - kind.repeated(mix));
  }
  for (std::size_t i = f.count; i-- > 0;)
    add(f.kinds[i].kind, *f.kinds[i].again, true, f.kinds[i].repeated(mix));
  if (mix.decoder_starts) add(LayerKind::decoder_embedding, *f.decoder_embedding, false, 1);
  begin();
}

StageMoment fullest_moment(const PlanInputs& in, std::size_t stage);
MomentPlace fullest_place(const PlanInputs& in, std::size_t stage);

}  // namespace costmodel
