#include "costmodel/estimate/model_flops.hpp"

#include <variant>

namespace costmodel {

namespace {

// The part of an operator's model FLOPs that remains when masked scores are left out.
double unmasked(const Op& op) {
  const auto part = [](const auto& o, bool cross) {
    return cross ? 1.0 : unmasked_part(o.window, o.key_count());
  };
  return std::visit(Visitor{[&](const FlashAttention& o) { return o.cross ? 1.0 : o.unmasked(); },
                            [&](const AttentionScores& o) { return part(o, o.keys > 0); },
                            [&](const AttentionContext& o) { return part(o, o.keys > 0); },
                            [](const auto&) { return 1.0; }},
                    op);
}

}  // namespace

ModelFlops model_flops(const OpList& list, LayerKind kind) {
  ModelFlops sum;
  for (const auto& steps : {forward_steps(list), backward_steps(list)}) {
    for (const Step& step : steps) {
      const Work work = work_of(step.node->op, step.pass, 2);
      const double part = kind.its.mixer == Mixer::encoder ? 1 : unmasked(step.node->op);
      sum += {work.model, work.model * part, work.executed};
    }
  }
  return sum;
}

}  // namespace costmodel
