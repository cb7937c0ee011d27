#include "planner/report/fine_tuning_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <variant>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/cost/layer_cost.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/estimate/layer_mix.hpp"

namespace planner {

using namespace costmodel;

namespace {

std::string_view base_name(const FineTuning& tuning) {
  return base_precision_names[static_cast<std::size_t>(tuning.base)];
}

double bits_of(const Scenario& s) {
  return 8 * s.training.fine_tuning.base_bytes(storage_bytes(s.training.precision));
}

// Of a micro-batch's passes over one layer.
Seconds dequantisation_of(LayerKind kind, const ParallelPlan& plan, Evaluator& evaluator) {
  const OpList list = evaluator.op_list(kind, plan);
  const Pricing pricing = evaluator.pricing(plan);
  Seconds sum;
  for (const auto& steps :
       {forward_steps(list), backward_steps(list),
        recompute_steps(list, region_of(plan.recompute), pricing.checkpoint_stops)}) {
    for (const costmodel::Step& step : steps) {
      if (std::holds_alternative<Dequantise>(step.node->op))
        sum += price(step, list, pricing).time();
    }
  }
  return sum;
}

}  // namespace

std::string method_text(const FineTuning& tuning) {
  if (tuning.method == FineTuningMethod::pretraining) return "";
  if (tuning.method == FineTuningMethod::full) return ", full fine-tuning";
  return fmt::format(", {} r {} on {}", tuning.method == FineTuningMethod::lora ? "LoRA" : "QLoRA",
                     tuning.rank, fmt::join(target_names(tuning), ", "));
}

std::vector<std::string_view> target_names(const FineTuning& tuning) {
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < adapter_target_names.size(); ++i) {
    if (tuning.has(static_cast<AdapterTarget>(i))) names.push_back(adapter_target_names[i]);
  }
  return names;
}

std::string trained_text(const Estimate& e, const Scenario& s) {
  const FineTuning& tuning = s.training.fine_tuning;
  if (!tuning.adapts()) return "";
  const bool wide = s.model.experts > 0 && !tuning.quantised_experts;
  return fmt::format(
      "{} parameters of adapters, {:.3g} % beside a frozen base in {} ({:.4g} bits{})",
      format_count(e.trained_parameters), 100 * e.trained_parameters / e.parameters,
      base_name(tuning), bits_of(s), wide ? "; experts, which are no modules, in 16" : "");
}

FrozenBase frozen_base(const Estimate& e, const Scenario& s, Evaluator& evaluator) {
  FrozenBase base{.bits = bits_of(s)};
  const ParallelPlan plan = evaluator.as_run(e.plan);
  const PlanCost& cost = evaluator.cost(e.plan);
  const RankRow& rank = cost.ranks.front();
  base.held =
      plan.zero == 3
          ? Bytes(sharded(rank.weights.frozen.value, rank.weights.frozen_experts.value, plan))
          : rank.weights.frozen;
  base.adapters = rank.memory.weights + rank.memory.gradients + rank.memory.optimizer - base.held;
  const LayerMix layers = cost.stages[0].layers;
  for (const LayerCount& own : layer_counts_of(s.model, layers)) {
    base.dequantisation +=
        dequantisation_of(own.kind, plan, evaluator) * static_cast<double>(own.number);
  }
  return base;
}

std::vector<Explained> explained_fine_tuning(const Estimate& e, const Scenario& s,
                                             Evaluator& evaluator) {
  const FineTuning& f = s.training.fine_tuning;
  if (!f.adapts()) return {};
  const FrozenBase base = frozen_base(e, s, evaluator);
  const std::string group = "fine-tuning";
  std::vector<Explained> rows{
      {group, "r", fmt::format("{}", f.rank),
       fmt::format("rank of the adapters on {}: B A x, scaled by alpha / r = {:.4g}",
                   fmt::join(target_names(f), ", "), f.alpha / static_cast<double>(f.rank))},
      {group, "trained", format_integer(std::llround(e.trained_parameters)),
       fmt::format("r (n + k) of each such projection of every layer{} (arXiv:2106.09685 section "
                   "4.1)",
                   s.training.stack.offers.joint_adapters
                       ? ", one adapter for queries, keys and values, one for both halves of a "
                         "gated MLP"
                       : "")},
      {group, "adapters", format_bytes(base.adapters),
       "their weights, gradients and states on one device of stage 0"},
      {group, "bits", fmt::format("{:.4g}", base.bits),
       f.base == BasePrecision::nf4
           ? (f.double_quantization
                  ? "of a frozen value: 4 + 8/64 + 32/(64 x 256) (arXiv:2305.14314 section 3)"
                  : "of a frozen value: 4 + 32/64")
           : "of a frozen value; embeddings, norms and the output projection keep 16"},
      {group, "base", format_bytes(base.held),
       "frozen weights on one device of stage 0: no gradients, no states, no reduction"}};
  if (f.base != BasePrecision::bf16) {
    rows.push_back({group, "t_q", format_seconds(base.dequantisation),
                    "dequantisation of a micro-batch on stage 0, in forward, backward and "
                    "recomputation: stored bytes read, 16 bits written, before each product"});
  }
  return rows;
}

}  // namespace planner
