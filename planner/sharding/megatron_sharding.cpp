#include "planner/sharding/megatron_sharding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace planner {

namespace {

using costmodel::Site;
using costmodel::Visitor;

// The experts' grid on the mesh, as splits of their products; empty if it does not consist of
// complete axes.
std::optional<std::array<Split, 2>> expert_splits(const costmodel::ParallelPlan& plan,
                                                  const DeviceMesh& mesh) {
  if (plan.etp != 1) return std::nullopt;
  if (plan.ep == 1) return std::array{Split::rows, Split::rows};
  if (plan.ep == mesh.devices()) return std::array{Split::experts, Split::experts};
  if (plan.ep == mesh.size(1)) return std::array{Split::rows, Split::experts};
  return std::nullopt;
}

bool is_row_parallel(Site site) {
  return site == Site::attention_projection || site == Site::mlp_down || site == Site::scan_out;
}
bool is_by_token(Site site) {
  return site == Site::router || site == Site::q_down || site == Site::kv_down;
}

// How the tensor ranks split an operator. `tokens`: the split between tensor-parallel regions.
Split tensor_split(const OperatorSite& site, Split tokens) {
  const bool sequence_parallel = tokens == Split::rows;
  return std::visit(Visitor{[&](const costmodel::Linear&) {
                              if (is_by_token(site.node.site)) return tokens;
                              if (is_row_parallel(site.node.site))
                                return sequence_parallel ? Split::inner_scattered : Split::inner;
                              return sequence_parallel ? Split::gathered_columns : Split::columns;
                            },
                            [&](const costmodel::GroupedLinear&) { return Split::experts; },
                            [&](const costmodel::Convolution&) { return Split::channels; },
                            [&](const costmodel::Scan&) { return Split::channels; },
                            [&](const costmodel::AttentionScores&) { return Split::channels; },
                            [&](const costmodel::AttentionContext&) {
                              return site.op.attention_core ? Split::channels : tokens;
                            },
                            [&](const costmodel::Softmax&) { return Split::channels; },
                            [&](const costmodel::FlashAttention&) { return Split::channels; },
                            [&](const costmodel::Dropout&) {
                              return site.op.attention_core ? Split::channels : tokens;
                            },
                            [&](const costmodel::Norm& o) {
                              return site.op.gated_norm || o.gains > 1 ? Split::channels : tokens;
                            },
                            [&](const costmodel::Activation&) { return Split::channels; },
                            [&](const costmodel::BiasDropoutAdd&) { return tokens; },
                            [&](const costmodel::Rotary&) { return Split::channels; },
                            [&](const costmodel::Routing&) { return tokens; },
                            [&](const costmodel::Permute&) { return tokens; },
                            [&](const costmodel::Embedding&) {
                              return sequence_parallel ? Split::inner_scattered : Split::inner;
                            },
                            [&](const costmodel::PositionEmbedding&) { return tokens; },
                            [&](const costmodel::CrossEntropy&) { return Split::channels; },
                            [&](const costmodel::Collective&) { return Split::whole; }},
                    site.node.op);
}

bool of_experts(const OperatorSite& site) {
  return std::holds_alternative<costmodel::GroupedLinear>(site.node.op) || site.op.of_experts;
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
  return std::holds_alternative<costmodel::Permute>(site.node.op);
}

}  // namespace

HandSharding hand_sharding(const StageGraph& graph, const costmodel::ParallelPlan& plan) {
  HandSharding hand;
  const DeviceMesh& mesh = graph.spec.mesh;
  if (plan.cp > 1) {
    hand.reason = "context parallelism is none of the strategies";
    return hand;
  }
  const auto experts = expert_splits(plan, mesh);
  const Split tokens = plan.sequence_parallel || plan.tp == 1 ? Split::rows : Split::whole;
  if (graph.has_input) {
    const TensorLayout input{mesh.size(0) > 1 ? Cut::rows : Cut::whole,
                             tokens == Split::rows && mesh.size(1) > 1 ? Cut::rows : Cut::whole};
    const auto at = std::find(graph.input_layouts.begin(), graph.input_layouts.end(), input);
    hand.choice.push_back(static_cast<int>(at - graph.input_layouts.begin()));
    if (at == graph.input_layouts.end()) hand.reason = "the stage's input cannot be cut so";
  }
  for (std::size_t v = 0; v < graph.nodes.size() && hand.reason.empty(); ++v) {
    const OperatorSite& site = graph.site(v);
    // Without tensor ranks the inner axis, if any, has data ranks too.
    std::array split{Split::rows, plan.tp > 1 ? tensor_split(site, tokens) : Split::rows};
    if (of_experts(site) && !between_tokens(site)) {
      if (!experts) hand.reason = "the experts' ranks are no axis of the mesh";
      if (experts) split = *experts;
    }
    const auto& node = graph.nodes[v];
    const auto& kind = graph.kinds[static_cast<std::size_t>(node.kind)];
    const int found =
        find(kind.strategies[static_cast<std::size_t>(node.site)], split, plan.zero, mesh);
    if (found < 0 && hand.reason.empty())
      hand.reason = fmt::format("{} cannot be cut so", site.node.name());
    hand.choice.push_back(found);
  }
  if (hand.reason.empty()) {
    hand.price = price_of(graph.problem, hand.choice);
  } else {
    hand.choice.clear();
  }
  return hand;
}

}  // namespace planner
