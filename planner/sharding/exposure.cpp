#include "planner/sharding/exposure.hpp"

namespace planner {

using namespace costmodel;

namespace {

const GroupLayout& group_of(int axis, const DeviceMesh& mesh) {
  return axis == 2 ? mesh.whole : mesh.axis[static_cast<std::size_t>(axis)];
}

}  // namespace

Seconds exposed_by_product(const std::vector<Exchange>& exchanges, Seconds window, bool independent,
                           const StagePrices& prices) {
  const Pricing& pricing = prices.pricing;
  const bool pieces = pricing.overlap.tp_comm_overlap || pricing.overlap.async_tp;
  Seconds sum;
  for (const Exchange& e : exchanges) {
    const Seconds alone = prices.mesh.time(e);
    const GroupLayout& group = group_of(e.axis, prices.mesh.mesh);
    const bool cut = pieces && e.kind != CollectiveKind::all_reduce &&
                     e.kind != CollectiveKind::all_to_all &&
                     in_one_domain(group, *prices.mesh.cluster);
    if (independent && pricing.backward_tp_overlap) {
      sum += exposed_beside(alone, window, pricing.overlap.slowdown);
    } else {
      sum += cut ? exposed_pipelined(alone, window, group.size, pricing.overlap.slowdown) : alone;
    }
  }
  return sum;
}

Seconds exposed_by_ring(const Exchange& ring, Seconds window, const StagePrices& prices) {
  const int transfers = group_of(ring.axis, prices.mesh.mesh).size - 1;
  return exposed_ring(prices.mesh.time(ring), window, transfers, prices.pricing.overlap.slowdown);
}

namespace {

// In every micro-batch, not once an iteration.
bool in_micro_batches(CollectiveKind kind, int zero) {
  return zero == 3 || (zero == 2 && kind != CollectiveKind::all_gather);
}

bool is_hidden(CollectiveKind kind, int zero, const StagePrices& prices) {
  const TrainingSpec& training = *prices.training;
  const bool gather = kind == CollectiveKind::all_gather;
  if (in_micro_batches(kind, zero))
    return training.stack.zero.prefetch || (!gather && training.overlap.overlap_grad_reduce);
  if (gather) return training.overlap.overlap_param_gather;
  return training.overlap.overlap_grad_reduce &&
         training.stack.collectives.hides_reduction(prices.mesh.mesh.size(1));
}

}  // namespace

Seconds exposed_by_passes(CollectiveKind kind, int zero, Seconds alone, const StagePrices& prices) {
  if (prices.forward.value <= 0 || !is_hidden(kind, zero, prices)) return alone;
  const Seconds first = alone / prices.layers;
  if (!in_micro_batches(kind, zero)) {
    const Seconds window = kind == CollectiveKind::all_gather ? prices.forward : prices.backward;
    return first + exposed_beside(alone - first, window, prices.training->overlap.slowdown);
  }
  // In the backward of ZeRO-3, which takes two forwards, a gather and a scatter share the window.
  const Seconds window = (zero == 3 ? prices.forward : prices.backward) / prices.layers;
  const double slowdown = prices.training->stack.zero.slowdown;
  return first + exposed_beside(alone, window, slowdown) * ((prices.layers - 1) / prices.layers);
}

}  // namespace planner
