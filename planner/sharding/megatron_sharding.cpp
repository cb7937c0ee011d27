#include "planner/sharding/megatron_sharding.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace planner {

namespace {

using namespace costmodel;

bool is_row_parallel(Site site) {
  return site == Site::attention_projection || site == Site::mlp_down || site == Site::scan_out;
}
bool is_by_token(Site site) {
  return site == Site::router || site == Site::q_down || site == Site::kv_down;
}

// How the tensor ranks split an operator. `tokens`: the split between tensor-parallel regions.
Split tensor_split(const OperatorSite& site, Split tokens) {
  const bool sequence_parallel = tokens == Split::rows;
  return std::visit(
      Visitor{[&](const Linear&) {
                if (is_by_token(site.node.site)) return tokens;
                if (is_row_parallel(site.node.site))
                  return sequence_parallel ? Split::inner_scattered : Split::inner;
                return sequence_parallel ? Split::gathered_columns : Split::columns;
              },
              [&](const GroupedLinear&) { return Split::experts; },
              [&](const Convolution&) { return Split::channels; },
              [&](const Scan&) { return Split::channels; },
              [&](const AttentionScores&) { return Split::channels; },
              [&](const AttentionContext&) {
                return site.op.attention_core ? Split::channels : tokens;
              },
              [&](const Softmax&) { return Split::channels; },
              [&](const FlashAttention&) { return Split::channels; },
              [&](const Dropout&) { return site.op.attention_core ? Split::channels : tokens; },
              [&](const Norm& o) {
                return site.op.gated_norm || o.gains > 1 ? Split::channels : tokens;
              },
              [&](const Activation&) { return Split::channels; },
              [&](const BiasDropoutAdd&) { return tokens; },
              [&](const Rotary&) { return Split::channels; },
              [&](const Routing&) { return tokens; },
              [&](const Permute&) { return tokens; },
              [&](const Embedding&) {
                return sequence_parallel ? Split::inner_scattered : Split::inner;
              },
              [&](const PositionEmbedding&) { return tokens; },
              [&](const CrossEntropy&) { return Split::channels; },
              [&](const Dequantise&) { return Split::whole; },
              [&](const AdapterSum&) { return tokens; },
              [&](const UnfusedPasses&) { return tokens; },
              [&](const Collective&) { return Split::whole; }},
      site.node.op);
}

bool of_experts(const OperatorSite& site) {
  return std::holds_alternative<GroupedLinear>(site.node.op) || site.op.of_experts;
}

// The strategy with these splits and the highest ZeRO stage not above `zero`; -1: none.
int find(const std::vector<OperatorStrategy>& strategies, std::array<Split, 2> split, int zero,
         const DeviceMesh& mesh) {
  for (int a = 0; a < 2; ++a) {
    if (mesh.size(a) == 1) split[static_cast<std::size_t>(a)] = Split::whole;
  }
  int best = -1;
  for (std::size_t i = 0; i < strategies.size(); ++i) {
    if (strategies[i].split == split && strategies[i].zero <= zero) best = static_cast<int>(i);
  }
  return best;
}

// The permutation back is also "of experts" by its input, but cuts tokens.
bool between_tokens(const OperatorSite& site) {
  return std::holds_alternative<Permute>(site.node.op);
}

// How an axis splits an operator under a plan's use of it.
Split axis_split(const OperatorSite& site, const AxisUses& uses, std::size_t a) {
  const bool core = std::holds_alternative<FlashAttention>(site.node.op);
  switch (uses.use[a]) {
    case AxisUse::data: return Split::rows;
    case AxisUse::ring: return core ? Split::ring : Split::rows;
    case AxisUse::heads: return core ? Split::channels : Split::rows;
    case AxisUse::tensor: break;
  }
  return tensor_split(site, uses.sequence_parallel ? Split::rows : Split::whole);
}

std::array<Split, 2> splits_of(const OperatorSite& site, const AxisUses& uses) {
  std::array<Split, 2> splits{};
  const bool experts = of_experts(site) && !between_tokens(site);
  for (std::size_t a = 0; a < 2; ++a) {
    if (experts) {
      splits[a] = uses.experts[a] ? Split::experts : Split::rows;
    } else {
      splits[a] = axis_split(site, uses, a);
    }
  }
  return splits;
}

// The layout in which the stage before hands over its output.
TensorLayout input_of(const AxisUses& uses, const DeviceMesh& mesh) {
  TensorLayout layout{};
  for (std::size_t a = 0; a < 2; ++a) {
    const bool whole = uses.use[a] == AxisUse::tensor && !uses.sequence_parallel;
    layout[a] = whole || mesh.size(static_cast<int>(a)) == 1 ? Cut::whole : Cut::rows;
  }
  return layout;
}

}  // namespace

UsesOfPlan uses_of(const ParallelPlan& plan, const DeviceMesh& mesh) {
  AxisUses uses;
  uses.zero = plan.zero;
  uses.sequence_parallel = plan.sequence_parallel;
  if (plan.tp > 1) uses.use[1] = AxisUse::tensor;
  if (plan.cp > 1) {
    const std::size_t axis = mesh.size(1) == plan.cp && plan.tp == 1 ? 1 : 0;
    if (mesh.size(static_cast<int>(axis)) != plan.cp)
      return {uses, "the context-parallel ranks are no axis of the mesh"};
    if (plan.cp_comm == ContextExchange::all_gather)
      return {uses, "gathering all keys and values is none of the strategies"};
    uses.use[axis] = plan.cp_comm == ContextExchange::p2p ? AxisUse::ring : AxisUse::heads;
  }
  if (plan.ep == 1 && plan.etp == 1) return {uses, ""};
  const bool all = plan.ep == mesh.devices(), inner = plan.ep == mesh.size(1);
  uses.experts = {all, all || inner};
  if (plan.etp > 1 || !(all || inner)) return {uses, "the experts' ranks are no axis of the mesh"};
  return {uses, ""};
}

HandSharding hand_sharding(const StageGraph& graph, const AxisUses& uses) {
  HandSharding hand;
  const DeviceMesh& mesh = graph.spec.mesh;
  if (graph.has_input) {
    const auto at = std::ranges::find(graph.input_layouts, input_of(uses, mesh));
    hand.choice.push_back(static_cast<int>(at - graph.input_layouts.begin()));
    if (at == graph.input_layouts.end()) hand.reason = "the stage's input cannot be cut so";
  }
  for (std::size_t v = 0; v < graph.nodes.size() && hand.reason.empty(); ++v) {
    const OperatorSite& site = graph.site(v);
    const auto& node = graph.nodes[v];
    const auto& kind = graph.kinds[static_cast<std::size_t>(node.kind)];
    const int found = find(kind.strategies[static_cast<std::size_t>(node.site)],
                           splits_of(site, uses), uses.zero, mesh);
    if (found < 0) hand.reason = fmt::format("{} cannot be cut so", site.node.name());
    hand.choice.push_back(found);
  }
  if (hand.reason.empty()) {
    hand.price = price_of(graph.problem, hand.choice);
  } else {
    hand.choice.clear();
  }
  return hand;
}

HandSharding hand_sharding(const StageGraph& graph, const ParallelPlan& plan) {
  const UsesOfPlan own = uses_of(plan, graph.spec.mesh);
  if (own.reason.empty()) return hand_sharding(graph, own.uses);
  HandSharding none;
  none.reason = own.reason;
  return none;
}

}  // namespace planner
