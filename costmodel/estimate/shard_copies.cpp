#include "costmodel/estimate/shard_copies.hpp"

#include "costmodel/cost/kernel_time.hpp"
#include "costmodel/estimate/stage_cost.hpp"

namespace costmodel {

namespace {

void take(StepKernels& sum, KernelOp op, bool forward, double elements, double own,
          const Workload& on) {
  if (elements + own <= 0) return;
  if (const auto kernels = kernel_time(kernel_set(on.training), op, forward, elements, own,
                                       storage_bytes(on.training.precision), on.cluster.device))
    sum.add(*kernels);
}

// By how much a pass is longer with these kernels: the slower of host and device decides.
struct Longer {
  Seconds time, waited;
  int kernels = 0;
};
Longer lengthened(const Cost& pass, const StepKernels& more, Seconds launch) {
  Longer by;
  Seconds device = pass.compute - pass.waited;
  for (const KernelTime& each : more) {
    device += each.time;
    by.kernels += each.kernels;
  }
  const Seconds communication = pass.time() - pass.compute;
  const Seconds host = pass.host + by.kernels * launch - communication;
  by.time = max(device, host) - pass.compute;
  by.waited = max(Seconds(0), host - device) - pass.waited;
  return by;
}

void add(const Longer& by, Seconds launch, double times, Cost& pass) {
  pass.compute += by.time * times;
  pass.waited += by.waited * times;
  pass.host += by.kernels * times * launch;
}

// Returns by what the layer's forward, with them, keeps the device longer than the host.
Seconds add(const PlanInputs& in, const LayerCost& layer, double times, const ShardedUnit& unit,
            StageRow& row) {
  if (times == 0) return {};
  const ShardCopies copies = shard_copies(layer, unit, in.plan, in.on, in.micro_batches);
  const Seconds launch = kernel_launch(in.on);
  const Longer forward = lengthened(layer.forward, copies.forward, launch),
               backward = lengthened(layer.backward, copies.backward, launch);
  add(forward, launch, times, row.forward);
  add(backward, launch, times, row.backward);
  const Seconds ahead = forward.time * times, after = backward.time * times;
  // They are of weights: in a split backward, of the weight gradient.
  if (splits_backward(in.plan.schedule)) row.weight_gradient.compute += after;
  row.copies_forward += ahead;
  row.copies_backward += after;
  return layer.forward.time() + forward.time - layer.forward.host - forward.kernels * launch;
}

}  // namespace

ShardCopies shard_copies(const LayerCost& layer, const ShardedUnit& unit, const ParallelPlan& plan,
                         const Workload& on, std::int64_t micro_batches) {
  const double element = storage_bytes(on.training.precision);
  const double experts = layer.expert_weights, others = layer.weights - experts - unit.less;
  const double frozen_experts = layer.frozen_experts.value / element,
               frozen = layer.frozen.value / element - frozen_experts;
  const auto own = [&](double all, double of_experts) {
    if (plan.zero < 2) return all + of_experts;
    return all / plan.shards() + of_experts / static_cast<double>(plan.expert_shards());
  };
  // Copied out of a gather; a rank that has all of a parameter uses it as it is.
  const auto copied = [&](double all, double of_experts) {
    return (plan.shards() > 1 ? all : 0) + (plan.expert_shards() > 1 ? of_experts : 0);
  };
  ShardCopies copies;
  if (gathers_in_forward(plan, on.training)) {
    const double shard = own(others + frozen, experts + frozen_experts);
    const double out = copied(others + frozen, experts + frozen_experts);
    take(copies.forward, KernelOp::shards, true, out, shard, on);
    const bool again = plan.zero == 3 && !unit.end;
    if (again) take(copies.backward, KernelOp::shards, true, out, shard, on);
  }
  if (plan.zero >= 2) {
    const double all = others + experts;
    take(copies.backward, KernelOp::shards, false, all, 0, on);
    take(copies.backward, KernelOp::unreduced, false, all - copied(others, experts), 0, on);
  }
  if (micro_batches > 1) {
    const auto m = static_cast<double>(micro_batches);
    take(copies.backward, KernelOp::accumulate, false, 0, own(others, experts) * (m - 1) / m, on);
  }
  return copies;
}

void add_copies(const PlanInputs& in, std::size_t k, StageRow& row) {
  const TrainingSpec& training = in.on.training;
  if (kernel_set(training).empty()) return;
  for (const LayerPrices::Kind& kind : in.layers.all()) {
    const int layers = kind.number(row.layers), repeated = kind.repeated(row.layers);
    add(in, *kind.again, repeated, {}, row);
    add(in, *kind.whole, layers - repeated, {}, row);
  }
  if (row.layers.decoder_starts) add(in, *in.layers.decoder_embedding, 1, {.end = true}, row);
  const bool first = k == 0, last = k == in.last_stage();
  if (first) {
    add(in, *in.layers.embedding, 1, {.end = true}, row);
    for (const LayerPrices::Tower& own : in.layers.towers) add(in, *own.cost, own.number, {}, row);
  }
  if (!last) return;
  row.head_lead = add(in, *in.layers.head, 1, {shared_table(in, k), true}, row);
  if (in.layers.mtp_layer != nullptr)
    add(in, *in.layers.mtp_layer, static_cast<double>(in.on.model.mtp_layers), {}, row);
}

}  // namespace costmodel
