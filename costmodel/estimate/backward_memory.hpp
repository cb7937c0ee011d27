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

StageMoment fullest_moment(const PlanInputs& in, std::size_t stage);
MomentPlace fullest_place(const PlanInputs& in, std::size_t stage);

}  // namespace costmodel
