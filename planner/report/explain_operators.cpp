#include "planner/report/explain_operators.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/estimate/layer_mix.hpp"

namespace planner {

using namespace costmodel;

namespace {

std::string shape_of(const costmodel::Op& op) {
  return std::visit(costmodel::Visitor{
                        [](const costmodel::Linear& o) {
                          return fmt::format("[{}, {}] x [{}, {}]", o.m, o.k, o.k, o.n);
                        },
                        [](const costmodel::AttentionScores& o) {
                          return fmt::format("{} x [{}, {}] x [{}, {}]", o.batch, o.s, o.head_dim,
                                             o.head_dim, o.key_count());
                        },
                        [](const costmodel::AttentionContext& o) {
                          return fmt::format("{} x [{}, {}] x [{}, {}]", o.batch, o.s,
                                             o.key_count(), o.key_count(), o.head_dim);
                        },
                        [](const costmodel::FlashAttention& o) {
                          const std::string keys =
                              o.attended > 0 ? fmt::format(" in samples of {:.4g}", o.attended)
                              : o.key_count() == o.s ? ""
                                                     : fmt::format(" of {} keys", o.keys);
                          return fmt::format("{} x {} heads ({} kv) x {}{} x {}", o.sequences,
                                             o.heads, o.kv_heads, o.s, keys, o.head_dim);
                        },
                        [](const costmodel::Collective& o) {
                          return std::string(costmodel::format_bytes(o.bytes));
                        },
                        [](const costmodel::Scan& o) {
                          return fmt::format("{} x {} heads x {} x {} channels, {} states",
                                             o.sequences, o.heads, o.s, o.head_dim, o.state);
                        },
                        [](const costmodel::GroupedLinear& o) {
                          return fmt::format("{} x [{}, {}] x [{}, {}]", o.experts, o.m / o.experts,
                                             o.k, o.k, o.n);
                        },
                        [](const auto& o) { return fmt::format("[{}, {}]", o.rows, o.cols); },
                    },
                    op);
}

std::string told_name(const Node& node) {
  const auto* c = std::get_if<costmodel::Collective>(&node.op);
  if (c == nullptr) return std::string(node.name());
  return fmt::format("{}: {} / {}", node.name(),
                     costmodel::collective_names[static_cast<std::size_t>(c->forward)],
                     costmodel::collective_names[static_cast<std::size_t>(c->backward)]);
}

// Time of the steps of a pass, by operator.
void add_steps(const std::vector<costmodel::Step>& steps, const OpList& list,
               const Pricing& pricing, Seconds OperatorTime::*pass,
               std::vector<OperatorTime>& operators) {
  for (const costmodel::Step& step : steps) {
    const auto at = static_cast<std::size_t>(step.node - list.nodes.data());
    operators[at].*pass += price(step, list, pricing).time();
  }
}

// Rounding of a sum taken in another order.
bool is_rounding(Seconds difference, Seconds of) {
  return std::abs(difference.value) <= 1e-12 * of.value;
}

struct Passes {
  Seconds forward, backward;
  Passes& operator+=(const Passes& o) {
    forward += o.forward;
    backward += o.backward;
    return *this;
  }
};

template <class Part>
Passes sum_of(const std::vector<Part>& parts) {
  Passes sum;
  for (const Part& part : parts) sum += {part.forward, part.backward};
  return sum;
}

// Backward as the schedule runs it: one part, or separate input and weight gradients.
Passes passes_of(const LayerCost& cost, bool split) {
  if (!split) return {cost.forward.time(), cost.backward.time()};
  return {cost.forward.time(), cost.input_gradient.time() + cost.weight_gradient.time()};
}

}  // namespace

std::vector<OperatorTime> operator_times(LayerKind kind, const ParallelPlan& asked,
                                         Evaluator& evaluator) {
  const ParallelPlan plan = evaluator.as_run(asked);
  const OpList list = evaluator.op_list(kind, plan);
  const Pricing pricing = evaluator.pricing(plan);
  const double element = storage_bytes(evaluator.training().precision);
  std::vector<OperatorTime> operators;
  std::vector<char> told(list.tensors.size(), 0);
  for (const Node& node : list.nodes) {
    OperatorTime& row = operators.emplace_back();
    row.name = told_name(node);
    row.shape = shape_of(node.op);
    row.flops = work_of(node.op, Pass::forward, element).model;
    for (const auto id : node.saved) {
      const auto& tensor = list.tensors[static_cast<std::size_t>(id)];
      const bool shared = tensor.role == costmodel::TensorRole::shared;
      if (!std::exchange(told[static_cast<std::size_t>(id)], char{1}) && !shared)
        row.kept += tensor.bytes();
    }
  }
  const bool split = splits_backward(plan.schedule);
  add_steps(forward_steps(list), list, pricing, &OperatorTime::forward, operators);
  using Lists = std::vector<std::vector<costmodel::Step>>;
  const Lists apart{input_gradient_steps(list), weight_gradient_steps(list)};
  for (const auto& steps : split ? apart : Lists{backward_steps(list)})
    add_steps(steps, list, pricing, &OperatorTime::backward, operators);
  const Passes layer = passes_of(evaluator.layer(kind, plan, Recomputed::nothing), split);
  const Passes sum = sum_of(operators);
  const auto waited = [](Seconds all, Seconds listed) {
    return is_rounding(all - listed, all) ? Seconds(0) : all - listed;
  };
  const Seconds forward = waited(layer.forward, sum.forward),
                backward = waited(layer.backward, sum.backward);
  if (forward.value != 0 || backward.value != 0)
    operators.push_back({"waiting for the host's launches", "", {}, forward, backward, {}});
  return operators;
}

Table operator_table(const std::vector<OperatorTime>& operators) {
  Table t{{left("operator"), left("shape on one device"), "forward FLOPs", "forward", "backward",
           "keeps"}};
  for (const OperatorTime& row : operators) {
    t.rows.push_back({row.name, row.shape, row.flops.value > 0 ? format_flops(row.flops) : "",
                      format_seconds(row.forward), format_seconds(row.backward),
                      row.kept.value > 0 ? format_bytes(row.kept) : ""});
  }
  return t;
}

namespace {

class StageParts {
 public:
  StageParts(const PlanCost& cost, std::size_t stage, const ParallelPlan& own, Evaluator& evaluator)
      : cost_(cost), stage_(stage), plan_(evaluator.as_run(own)), evaluator_(evaluator) {}

  std::vector<StagePart> all() {
    const LayerMix& mix = cost_.stages[stage_].layers;
    const auto towers = costmodel::tower_layers(evaluator_.model());
    for (const costmodel::TowerLayers& own : towers)
      if (stage_ == 0) layers(own.kind, own.number, again(own));
    if (stage_ == 0) layers(LayerKind::embedding, 1, 0);
    for (const costmodel::LayerCount& own : layer_counts_of(evaluator_.model(), mix)) {
      if (own.kind.its.mixer == Mixer::decoder && mix.decoder_starts)
        layers(LayerKind::decoder_embedding, 1, 0);
      layers(own.kind, own.number, own.again);
    }
    if (stage_ + 1 == cost_.stages.size()) layers(LayerKind::head, 1, 0);
    add("copies of sharded parameters, sums of gradients",
        {cost_.stages[stage_].copies_forward, cost_.stages[stage_].copies_backward});
    const Passes priced{
        cost_.stages[stage_].forward.time(),
        cost_.stages[stage_].backward.time() + cost_.stages[stage_].recompute.time()};
    add("waits for launches that the host's lead spares",
        {cost_.stages[stage_].hidden_forward * -1, cost_.stages[stage_].hidden_backward * -1});
    rest("devices of a node together, clocks raised while others wait", priced);
    const Seconds host = evaluator_.training().stack.host.micro_batch / 2;
    add("host", {host, host});
    add("ZeRO: gathers and reductions",
        {cost_.stages[stage_].zero_forward, cost_.stages[stage_].zero_backward});
    add("waiting for the longest samples",
        {cost_.stages[stage_].longest_forward, cost_.stages[stage_].longest_backward});
    Passes whole{cost_.times.forward[stage_], cost_.times.backward[stage_]};
    if (!cost_.times.weight_gradient.empty()) whole.backward += cost_.times.weight_gradient[stage_];
    rest("activations to host memory and back", whole);
    return std::move(parts_);
  }

 private:
  void add(std::string name, const Passes& passes, int layers = 0) {
    if (passes.forward.value == 0 && passes.backward.value == 0) return;
    parts_.push_back({std::move(name), layers, passes.forward, passes.backward});
  }

  // The remainder to a sum.
  void rest(const char* name, const Passes& sum) {
    const Passes told = sum_of(parts_);
    const Passes missing{sum.forward - told.forward, sum.backward - told.backward};
    if (!is_rounding(missing.forward, sum.forward) || !is_rounding(missing.backward, sum.backward))
      add(name, missing);
  }

  int again(const costmodel::TowerLayers& own) const {
    const auto& tuning = evaluator_.training().fine_tuning;
    return recomputes(own.kind, plan_.recompute, tuning) ? own.number : 0;
  }

  void layers(LayerKind kind, int number, int again) {
    if (number == 0) return;
    const std::string name = describe(kind);
    const auto region = again > 0 ? region_of(plan_.recompute) : Recomputed::nothing;
    const LayerCost& cost = evaluator_.layer(kind, plan_, region);
    const Passes each = passes_of(cost, splits_backward(plan_.schedule));
    add(name, {number * each.forward, number * each.backward}, number);
    add(name + ", recomputed", {Seconds(0), again * cost.recompute.time()}, again);
  }

  const PlanCost& cost_;
  std::size_t stage_;
  ParallelPlan plan_;
  Evaluator& evaluator_;
  std::vector<StagePart> parts_;
};

}  // namespace

std::vector<StagePart> stage_parts(const PlanCost& cost, std::size_t stage, const ParallelPlan& own,
                                   Evaluator& evaluator) {
  return StageParts(cost, stage, own, evaluator).all();
}

Table stage_table(const std::vector<StagePart>& parts) {
  Table t{{left("part"), "layers", "forward", "backward"}};
  const auto row = [&t](const std::string& name, int layers, const Passes& passes) {
    t.rows.push_back({name, layers > 0 ? fmt::format("{}", layers) : "",
                      format_seconds(passes.forward), format_seconds(passes.backward)});
  };
  for (const StagePart& part : parts) row(part.name, part.layers, {part.forward, part.backward});
  row("all", 0, sum_of(parts));
  return t;
}

Table kernel_table(const costmodel::StageKernels& stage) {
  Table t{{left("kernels"), left("pass"), "launches", "bytes", "time", left("bound by")}};
  auto rows = stage.kernels;
  std::ranges::stable_sort(rows, std::greater{}, [](const auto& row) { return row.sum.time; });
  for (const costmodel::ListedKernels& row : rows) {
    t.rows.push_back({row.name, std::string(row.passes), fmt::format("{}", row.sum.kernels),
                      format_bytes(row.sum.moved), format_seconds(row.sum.time),
                      std::string(name_of(row.bound))});
  }
  return t;
}

Table pace_table(const costmodel::StageKernels& stage) {
  Table t{{left("one layer"), "layers", "launches", "host", "device", left("sets the pace")}};
  for (const costmodel::PassPace& pass : stage.passes) {
    t.rows.push_back({pass.name, fmt::format("{}", pass.layers), fmt::format("{}", pass.launches),
                      format_seconds(pass.host), format_seconds(pass.device),
                      pass.host_bound() ? "host" : "device"});
  }
  return t;
}

std::vector<LayerKind> layer_kinds(const costmodel::ModelSpec& model) {
  std::vector<LayerKind> kinds;
  for (const costmodel::TowerLayers& own : costmodel::tower_layers(model))
    kinds.push_back(own.kind);
  kinds.push_back(LayerKind::embedding);
  for (const costmodel::Block& block : model.blocks()) {
    if (block.mixer == Mixer::decoder) kinds.push_back(LayerKind::decoder_embedding);
    kinds.emplace_back(block);
  }
  kinds.push_back(LayerKind::head);
  return kinds;
}

}  // namespace planner
