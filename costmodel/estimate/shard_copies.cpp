#include "costmodel/estimate/shard_copies.hpp"

#include "costmodel/cost/kernel_time.hpp"

namespace costmodel {

namespace {

class Copies {
 public:
  Copies(const PlanInputs& in, const KernelSet& set) : in_(in), set_(set) {}

  void add(const LayerCost& layer, double times, double less, StageRow& row) {
    if (times == 0) return;
    const ParallelPlan& plan = in_.plan;
    const double element = storage_bytes(in_.on.training.precision);
    const double experts = layer.expert_weights, others = layer.weights - experts - less;
    const double frozen_experts = layer.frozen_experts.value / element,
                 frozen = layer.frozen.value / element - frozen_experts;
    const auto own = [&](double all, double of_experts) {
      if (plan.zero < 2) return all + of_experts;
      return all / plan.shards() + of_experts / static_cast<double>(plan.expert_shards());
    };
    Sum forward, backward;
    if (plan.zero == 3) {
      const double all = others + experts + frozen + frozen_experts,
                   shard = own(others + frozen, experts + frozen_experts);
      take(forward, KernelOp::shards, true, all, shard);
      take(backward, KernelOp::shards, true, all, shard);
    }
    if (plan.zero >= 2)
      take(backward, KernelOp::shards, false, others + experts, own(others, experts));
    if (in_.micro_batches > 1) {
      const auto m = static_cast<double>(in_.micro_batches);
      take(backward, KernelOp::accumulate, false, 0, own(others, experts) * (m - 1) / m);
    }
    const Seconds ahead = lengthened(layer.forward, forward) * times,
                  after = lengthened(layer.backward, backward) * times;
    row.forward.compute += ahead;
    row.backward.compute += after;
    row.forward.kernels += static_cast<int>(forward.kernels * times);
    row.backward.kernels += static_cast<int>(backward.kernels * times);
    // They are of weights: in a split backward, of the weight gradient.
    if (splits_backward(plan.schedule)) row.weight_gradient.compute += after;
    row.copies_forward += ahead;
    row.copies_backward += after;
  }

 private:
  struct Sum {
    Seconds time;
    int kernels = 0;
  };

  void take(Sum& sum, KernelOp op, bool forward, double elements, double own) const {
    if (elements + own <= 0) return;
    const auto kernels =
        kernel_time(set_, op, forward, elements, own, storage_bytes(in_.on.training.precision),
                    in_.on.cluster.device);
    if (!kernels) return;
    sum.time += kernels->time;
    sum.kernels += kernels->kernels;
  }

  // By how much a pass is longer with these kernels: the slower of host and device decides.
  Seconds lengthened(const Cost& pass, const Sum& more) const {
    const Seconds communication = pass.time() - pass.compute;
    const Seconds host = (pass.kernels + more.kernels) * launch_ - communication;
    return max(pass.compute + more.time, host) - pass.compute;
  }

  const PlanInputs& in_;
  const KernelSet& set_;
  Seconds launch_ = kernel_launch(in_.on);
};

}  // namespace

void add_copies(const PlanInputs& in, std::size_t k, StageRow& row) {
  const TrainingSpec& training = in.on.training;
  const KernelSet& set = kernel_set(training);
  if (set.empty()) return;
  Copies copies(in, set);
  for (const LayerPrices::Kind& kind : in.layers.all()) {
    const int layers = kind.number(row.layers), repeated = kind.repeated(row.layers);
    copies.add(*kind.again, repeated, 0, row);
    copies.add(*kind.whole, layers - repeated, 0, row);
  }
  if (row.layers.decoder_starts) copies.add(*in.layers.decoder_embedding, 1, 0, row);
  const bool first = k == 0, last = k == in.last_stage();
  if (first) copies.add(*in.layers.embedding, 1, 0, row);
  if (!last) return;
  const bool shared = first && in.on.model.tie_embeddings && !training.fine_tuning.adapts();
  copies.add(*in.layers.head, 1, shared ? vocabulary_table(in.on.model, in.plan.tp) : 0, row);
  if (in.layers.mtp_layer != nullptr)
    copies.add(*in.layers.mtp_layer, static_cast<double>(in.on.model.mtp_layers), 0, row);
}

}  // namespace costmodel
