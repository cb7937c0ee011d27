#include "costmodel/estimate/kernel_list.hpp"

#include <algorithm>
#include <utility>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/estimate/shard_copies.hpp"

namespace costmodel {

namespace {

constexpr std::string_view in_forward = "forward", in_backward = "backward",
                           in_repeat = "recomputed", in_end = "iteration";

class List {
 public:
  List(const PlanCost& cost, std::size_t stage, const ParallelPlan& own, Evaluator& evaluator)
      : cost_(cost), stage_(stage), plan_(evaluator.as_run(own)), evaluator_(evaluator) {}

  StageKernels all() {
    const ModelSpec& model = evaluator_.model();
    const LayerMix& mix = cost_.stages[stage_].layers;
    for (const TowerLayers& own : stage_ == 0 ? tower_layers(model) : std::vector<TowerLayers>())
      layers(own.kind, own.number, again(own));
    if (stage_ == 0) layers(LayerKind::embedding, 1, 0);
    for (const LayerCount& own : layer_counts_of(model, mix)) {
      if (own.kind.its.mixer == Mixer::decoder && mix.decoder_starts)
        layers(LayerKind::decoder_embedding, 1, 0);
      layers(own.kind, own.number, own.again);
    }
    if (stage_ + 1 == cost_.stages.size()) {
      const auto more = static_cast<int>(model.mtp_layers);
      layers(LayerKind::mtp_start, more, 0);
      layers(mtp_layer(model), more, 0);
      layers(LayerKind::head, 1 + more, 0);
    }
    const auto step = optimizer_kernels(plan_, evaluator_.workload(), rank().weights);
    if (step && plan_.offload.optimizer < 1)  // else the host's processors update all of it
      add(std::string(step->name), in_end, *step, 1);
    return std::move(list_);
  }

 private:
  const RankRow& rank() const {
    const bool even = cost_.ranks.size() == static_cast<std::size_t>(plan_.pp);
    return cost_.ranks[even ? static_cast<std::size_t>(
                                  rank_of(plan_.schedule, plan_.pp, static_cast<int>(stage_)))
                            : stage_];
  }

  // Shares of a sum are weighed by time. `waits`: the host sets the pace of the pass.
  void add(const std::string& name, std::string_view passes, const KernelTime& kernels, int times,
           bool waits = false) {
    if (times == 0 || (kernels.time.value == 0 && kernels.kernels == 0)) return;
    const auto known = std::ranges::find_if(list_.kernels, [&](const ListedKernels& row) {
      return row.name == name && row.passes == passes && row.sum.kind == kernels.kind;
    });
    ListedKernels& row = known != list_.kernels.end()
                             ? *known
                             : list_.kernels.emplace_back(ListedKernels{name, passes, {}, {}});
    KernelTime& sum = row.sum;
    const Seconds more = times * kernels.time, all = sum.time + more;
    const auto share = [&](double before, double now) {
      return all.value > 0 ? (before * sum.time.value + now * more.value) / all.value : 0;
    };
    sum.copies = share(sum.copies, kernels.copies);
    sum.indexing = share(sum.indexing, kernels.indexing);
    sum.kind = kernels.kind;
    sum.time = all;
    sum.moved += kernels.moved * times;
    sum.executed += kernels.executed * times;
    sum.kernels += kernels.kernels * times;
    row.bound = waits && sum.kernels * pricing_.kernel_launch > sum.time
                    ? KernelBound::launch
                    : bound_of(sum, evaluator_.cluster().device);
  }

  // A pass of `number` layers: its steps' kernels, then the copies of its parameters.
  void pass(LayerKind kind, std::string_view passes, int number, const Cost& cost,
            const std::vector<Step>& steps, const StepKernels& copies) {
    if (number == 0 || steps.empty()) return;
    std::vector<std::pair<std::string, KernelTime>> launched;
    for (const Step& step : steps) {
      const StepKernels of_step = step_kernels(step, pricing_);
      for (std::size_t i = 0; i < of_step.number;
           ++i)  // the operator's own, then what is around it
        launched.emplace_back(i == 0 ? step.node->name() : of_step.all[i].name, of_step.all[i]);
    }
    for (const KernelTime& each : copies) launched.emplace_back(each.name, each);
    PassPace pace;
    pace.name = describe(kind) + ", " + std::string(passes);
    pace.layers = number;
    pace.launches = cost.launches;
    pace.host = cost.host;
    for (const KernelTime& each : copies) {
      pace.launches += each.kernels;
      pace.host += each.kernels * pricing_.kernel_launch;
    }
    pace.device = cost.time() - cost.compute;
    for (const auto& [name, kernels] : launched) pace.device += kernels.time;
    for (const auto& [name, kernels] : launched)
      add(name, passes, kernels, number, pace.host_bound());
    list_.passes.push_back(std::move(pace));
  }

  int again(const TowerLayers& own) const {
    const FineTuning& tuning = evaluator_.training().fine_tuning;
    return recomputes(own.kind, plan_.recompute, tuning) ? own.number : 0;
  }

  // Of `repeated` of the layers forward is computed again before backward.
  void layers(LayerKind kind, int number, int repeated) {
    if (number == 0) return;
    OpList list = evaluator_.op_list(kind, plan_);
    const auto region = repeated > 0 ? region_of(plan_.recompute) : Recomputed::nothing;
    const LayerCost& cost = evaluator_.layer(kind, plan_, region);
    const ShardCopies copies = copies_of(kind, cost);
    pass(kind, in_forward, number, cost.forward, forward_steps(list), copies.forward);
    const int first = untrained(kind);
    pass(kind, in_backward, number - first, cost.backward, backward_steps(list), copies.backward);
    pass(kind, in_repeat, repeated, cost.recompute,
         recompute_steps(list, region, pricing_.checkpoint_stops), {});
    if (first == 0) return;
    list.input_trained = false;  // below the first adapters nothing needs a gradient
    pass(kind, in_backward, first, cost.first_backward, backward_steps(list), copies.backward);
  }

  int untrained(LayerKind kind) const {
    const bool ends = stage_ == 0 && evaluator_.training().fine_tuning.adapts() &&
                      plan_.recompute.granularity == Recomputation::none;
    return ends && kind == first_kind() ? 1 : 0;
  }

  LayerKind first_kind() const {
    for (const LayerCount& own : layer_counts_of(evaluator_.model(), cost_.stages[stage_].layers))
      if (own.number > 0) return own.kind;
    return LayerKind::block;
  }

  ShardCopies copies_of(LayerKind kind, const LayerCost& cost) const {
    const Workload& on = evaluator_.workload();
    if (kernel_set(on.training).empty()) return {};
    const bool shared = kind == LayerKind::head && stage_ == 0 && on.model.tie_embeddings &&
                        !on.training.fine_tuning.adapts();
    return shard_copies(cost, {shared ? vocabulary_table(on.model, plan_.tp) : 0, kind.is_end()},
                        plan_, on, cost_.micro_batches);
  }

  const PlanCost& cost_;
  std::size_t stage_;
  ParallelPlan plan_;
  Evaluator& evaluator_;
  Pricing pricing_ = evaluator_.pricing(plan_);
  StageKernels list_;
};

}  // namespace

std::array<Seconds, kernel_kind_names.size()> StageKernels::by_kind(
    std::int64_t micro_batches) const {
  std::array<Seconds, kernel_kind_names.size()> all{};
  const auto of = [&](KernelKind kind) -> Seconds& { return all[static_cast<std::size_t>(kind)]; };
  for (const ListedKernels& row : kernels) {
    const Seconds time =
        row.sum.time * (row.passes == in_end ? 1 : static_cast<double>(micro_batches));
    of(row.sum.kind) += time * (1 - row.sum.copies - row.sum.indexing);
    of(KernelKind::copies) += time * row.sum.copies;
    of(KernelKind::indexing) += time * row.sum.indexing;
  }
  return all;
}

StageKernels stage_kernels(const PlanCost& cost, std::size_t stage, const ParallelPlan& own,
                           Evaluator& evaluator) {
  return List(cost, stage, own, evaluator).all();
}

}  // namespace costmodel
