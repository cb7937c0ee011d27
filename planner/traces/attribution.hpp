// Which operator of a model a kernel belongs to: by the host's operators that launched it and their
// sizes where they are recorded, else by the kernel's name.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "costmodel/model/model_spec.hpp"
#include "costmodel/plan/training_spec.hpp"
#include "planner/traces/trace.hpp"

namespace planner {

// Operators of the op list that profiles can distinguish. `other_products`,
// `other_elementwise`: by the kernel's name alone.
enum class TracedPart {
  mlp_products,
  attention_products,
  logits_products,
  expert_products,
  adapter_products,
  other_products,
  attention,
  norms,
  activation,
  rotary,
  repeat_kv,
  residual,
  casts,
  adapters,
  loss,
  embedding,
  routing,
  shards,
  optimizer,
  communication,
  other_elementwise,
  unknown,
};
inline constexpr std::size_t traced_part_count = 22;
inline constexpr std::array<std::string_view, traced_part_count> traced_part_names{
    "products of the MLP",
    "products of attention",
    "logits",
    "products of experts",
    "products of adapters",
    "other products",
    "attention",
    "norms",
    "activation",
    "rotary embedding",
    "keys and values repeated",
    "residual",
    "casts of operands",
    "adapters",
    "loss",
    "token embedding",
    "routing and permutation",
    "copies of sharded parameters",
    "optimizer and clipping",
    "communication",
    "other element-wise kernels",
    "not attributed",
};
inline std::string_view name_of(TracedPart part) {
  return traced_part_names[static_cast<std::size_t>(part)];
}

struct Attribution {
  TracedPart part = TracedPart::unknown;
  bool backward = false;  // or recomputed for it
  // Of a dense layer's product, neither of whose matrices has a micro-batch's rows.
  bool other_rows = false;
};

// By the sizes of a model.
class Attributor {
 public:
  // `model`: as a device has it; `tokens`: of a micro-batch on it.
  Attributor(costmodel::ModelSpec model, const costmodel::TrainingSpec& training,
             std::int64_t tokens)
      : model_(std::move(model)),
        rank_(training.fine_tuning.adapts() ? training.fine_tuning.rank : 0),
        tokens_(tokens) {}
  // `trace`: nested (nest()).
  Attribution of(const Trace& trace, const TracedKernel& kernel) const;

 private:
  TracedPart by_sizes(std::string_view name, const std::string& sizes) const;
  TracedPart product(const std::string& sizes, bool grouped) const;
  Attribution of_product(const std::string& sizes, bool grouped, bool backward) const;

  costmodel::ModelSpec model_;
  std::int64_t rank_;  // of adapters; 0: none
  std::int64_t tokens_;
};

// The part of a row of the predicted list (StageKernels).
TracedPart part_of_listed(std::string_view name);

}  // namespace planner
