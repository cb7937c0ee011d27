#include "costmodel/estimate/peak_place.hpp"

#include <map>
#include <vector>

#include "costmodel/estimate/backward_memory.hpp"
#include "costmodel/estimate/memory.hpp"
#include "costmodel/estimate/pricing.hpp"

namespace costmodel {

namespace {

// The activations that one rank keeps, by name.
class KeptTensors {
 public:
  explicit KeptTensors(const PlanInputs& in) : in_(in) {}

  // Of a virtual stage, for so many micro-batches.
  void add_stage(std::size_t k, double micro_batches) {
    const Recomputed region = region_of(in_.plan.recompute);
    each_layer(in_, k, [&](LayerKind kind, const LayerCost&, bool again, int layers) {
      const double count = layers * micro_batches;
      add(kind, again ? region : Recomputed::nothing, count);
      if (again && keeps_alternate(in_)) add_alternate(kind, count);
    });
  }

  // The one that takes most.
  std::pair<std::string, Bytes> most() const {
    std::pair<std::string, Bytes> most;
    for (const auto& [name, bytes] : bytes_)
      if (bytes > most.second) most = {name, bytes};
    return most;
  }

 private:
  void add(LayerKind kind, Recomputed what, double count) {
    const OpList list = build_layer(kind, in_.on.model, context_of(in_.plan, in_.on));
    for (const TensorId id : kept_tensors(list, what)) {
      const TensorInfo& tensor = list.tensors[static_cast<std::size_t>(id)];
      bytes_[std::string(tensor.name)] += tensor.bytes() * count;
    }
  }

  void add_alternate(LayerKind kind, double count) {
    const OpList list = build_layer(kind, in_.on.model, context_of(in_.plan, in_.on));
    for (const auto& [id, bytes] : alternate_tensors(list)) {
      const TensorInfo& tensor = list.tensors[static_cast<std::size_t>(id)];
      bytes_[std::string(tensor.name)] += bytes * count;
    }
  }

  const PlanInputs& in_;
  std::map<std::string, Bytes> bytes_;
};

}  // namespace

PeakPlace peak_place(const PlanInputs& in, const PlanCost& cost) {
  const std::size_t rank = cost.fullest;
  PeakPlace place;
  place.stage = static_cast<int>(rank);
  if (cost.ranks[rank].memory.peaks_in_step()) {
    place.op = "gradients in fp32";
    place.pass = "step";
    place.working = cost.ranks[rank].memory.widened;
    return place;
  }
  MomentPlace at;
  KeptTensors kept(in);
  const std::vector<double> held = held_by_chunk(in, cost.ranks[rank], rank);
  for (int v = 0; v < in.plan.chunks(); ++v) {
    const std::size_t k = in.stage_of(v, rank);
    kept.add_stage(k, held[static_cast<std::size_t>(v)]);
    const MomentPlace own = fullest_place(in, k);
    // As memory has it: the last stage's own counts where the rank has it.
    const bool last = in.has_stage(rank, in.last_stage());
    if (last ? k == in.last_stage() : own.moment.sum() > at.moment.sum()) at = own;
  }
  if (at.after) {
    place.layer = describe(LayerKind::embedding);
    place.op = at.moment.buffers > Bytes(0) ? "gradient reduction" : "";  // else they are complete
    place.pass = "backward";
    place.working = at.moment.buffers;
    return place;
  }
  const Recomputed region = at.again ? region_of(in.plan.recompute) : Recomputed::nothing;
  const OpList list = build_layer(at.kind, in.on.model, context_of(in.plan, in.on));
  const Footprint own = footprint(list, region);
  const int node = at.backward ? own.backward_at : own.forward_at;
  place.layer = describe(at.kind);
  if (node >= 0) place.op = list.nodes[static_cast<std::size_t>(node)].name();
  place.pass = !at.backward ? "forward" : own.in_recomputation ? "recomputed" : "backward";
  place.working = at.backward ? own.backward_transient : own.forward_transient;
  const auto [name, bytes] = kept.most();
  place.tensor = name;
  place.kept = bytes;
  return place;
}

}  // namespace costmodel
