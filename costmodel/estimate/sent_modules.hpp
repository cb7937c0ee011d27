// What the modules of plan.offload send to the host: bytes of a layer, and the time that their
// transfers add (Megatron-LM, core/pipeline_parallel/fine_grained_activation_offload.py).
#pragma once

#include <array>

#include "costmodel/estimate/plan_cost.hpp"
#include "costmodel/estimate/plan_inputs.hpp"

namespace costmodel {

class SentModules {
 public:
  explicit SentModules(const PlanInputs& in);
  // By a micro-batch, of all layers of virtual stage k.
  Bytes of_stage(std::size_t k) const;
  // Of the layer that sends most. The manager leaves that of the last one on the device, so that
  // backward does not wait for it, and fetches the next one's while a layer is differentiated.
  Bytes largest() const;
  // What computation of the same layer does not hide, of a micro-batch on virtual stage k.
  Offload exposed(std::size_t k) const;

 private:
  const PlanInputs& in_;
  std::array<Bytes, most_blocks> kept_, again_;  // a layer of each kind, kept and recomputed
};

}  // namespace costmodel
