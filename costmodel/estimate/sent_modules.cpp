#include "costmodel/estimate/sent_modules.hpp"

#include "costmodel/operators/lifetimes.hpp"
#include "costmodel/operators/transformer.hpp"

namespace costmodel {

SentModules::SentModules(const PlanInputs& in) : in_(in) {
  const unsigned modules = in.plan.offload.modules;
  const Recomputed what = region_of(in.plan.recompute);
  for (std::size_t i = 0; i < in.layers.count; ++i) {
    const OpList list =
        build_layer(in.layers.kinds[i].kind, in.on.model, context_of(in.plan, in.on));
    kept_[i] = sent_tensors(list, Recomputed::nothing, modules);
    again_[i] = sent_tensors(list, what, modules);
  }
}

Bytes SentModules::of_stage(std::size_t k) const {
  const LayerMix& mix = in_.mixes()[k];
  Bytes sent;
  for (std::size_t i = 0; i < in_.layers.count; ++i) {
    const int all = in_.layers.kinds[i].number(mix), again = in_.layers.kinds[i].repeated(mix);
    sent += kept_[i] * (all - again) + again_[i] * again;
  }
  return sent;
}

Bytes SentModules::largest() const {
  Bytes most;
  for (std::size_t i = 0; i < in_.layers.count; ++i) most = max(most, max(kept_[i], again_[i]));
  return most;
}

Offload SentModules::exposed(std::size_t k) const {
  const LayerMix& mix = in_.mixes()[k];
  Offload offload;
  offload.every_stage = true;
  const auto add = [&](Bytes sent, const LayerCost& layer, int count) {
    const Seconds transfer = sent / in_.on.cluster.device.host_bandwidth;
    const auto left = [&](Seconds computed) {
      const bool hides = !in_.on.training.overlap.nothing_hidden;
      return max(Seconds(0), transfer - (hides ? computed : Seconds(0))) * count;
    };
    offload.forward += left(layer.forward.time());
    offload.backward += left(layer.backward.time() + layer.recompute.time());
  };
  for (std::size_t i = 0; i < in_.layers.count; ++i) {
    const LayerPrices::Kind& kind = in_.layers.kinds[i];
    const int again = kind.repeated(mix);
    add(kept_[i], *kind.whole, kind.number(mix) - again);
    add(again_[i], *kind.again, again);
  }
  return offload;
}

}  // namespace costmodel
