#include "planner/sharding/sharded_plan.hpp"

#include <array>

namespace planner {

using namespace costmodel;

namespace {

constexpr std::array all_uses{AxisUse::data, AxisUse::tensor, AxisUse::ring, AxisUse::heads};

// The plan that uses the axes so; nothing where a plan has one size for both, but not in two ways.
std::optional<ParallelPlan> plan_with(const AxisUses& uses, const StageSpec& spec,
                                      const ParallelPlan& base) {
  ParallelPlan plan = base;
  plan.tp = plan.cp = plan.dp = plan.ep = plan.etp = 1;
  plan.cp_comm = ContextExchange::p2p;
  plan.zero = uses.zero;
  plan.sequence_parallel = uses.sequence_parallel;
  for (std::size_t a = 0; a < 2; ++a) {
    const int ranks = spec.mesh.size(static_cast<int>(a));
    switch (uses.use[a]) {
      case AxisUse::data: plan.dp *= ranks; break;
      case AxisUse::tensor: plan.tp *= ranks; break;
      case AxisUse::heads: plan.cp_comm = ContextExchange::a2a; [[fallthrough]];
      case AxisUse::ring: plan.cp *= ranks; break;
    }
    if (uses.experts[a]) plan.ep *= ranks;
  }
  if (spec.micro_batch % plan.dp != 0) return std::nullopt;
  plan.micro_batch = spec.micro_batch / plan.dp;
  return plan;
}

// Axes of one device are used for data; of two context axes there is no plan.
bool is_use(const AxisUses& uses, const DeviceMesh& mesh) {
  int contexts = 0, tensors = 0;
  for (std::size_t a = 0; a < 2; ++a) {
    const bool idle = mesh.size(static_cast<int>(a)) == 1;
    if (idle && (uses.use[a] != AxisUse::data || uses.experts[a])) return false;
    contexts += uses.use[a] == AxisUse::ring || uses.use[a] == AxisUse::heads ? 1 : 0;
    tensors += uses.use[a] == AxisUse::tensor ? 1 : 0;
  }
  return contexts <= 1 && (tensors > 0 || !uses.sequence_parallel);
}

std::vector<AxisUses> uses_on(const DeviceMesh& mesh) {
  std::vector<AxisUses> found;
  AxisUses u;
  for (const AxisUse outer : all_uses) {
    for (const AxisUse inner : all_uses) {
      for (unsigned bits = 0; bits < 8; ++bits) {
        u.use = {outer, inner};
        u.experts = {(bits & 1U) != 0, (bits & 2U) != 0};
        u.sequence_parallel = (bits & 4U) != 0;
        for (u.zero = 0; is_use(u, mesh) && u.zero <= 3; ++u.zero) found.push_back(u);
      }
    }
  }
  return found;
}

// Whether two strategies of an operator are the same to a plan: the same splits and, where weights
// are large enough to be sharded, the same ZeRO stage.
bool alike(const OperatorStrategy& a, const OperatorStrategy& b) {
  return a.split == b.split && a.zero == b.zero;
}

std::vector<std::size_t> unlike_nodes(const StageGraph& graph, const std::vector<int>& a,
                                      const std::vector<int>& b) {
  std::vector<std::size_t> unlike;
  for (std::size_t v = 0; v < graph.nodes.size(); ++v)
    if (!alike(graph.strategy(v, a), graph.strategy(v, b))) unlike.push_back(v);
  return unlike;
}

}  // namespace

std::optional<ShardedPlan> nearest_plan(const StageGraph& graph, const std::vector<int>& choice,
                                        const ParallelPlan& base,
                                        const std::function<bool(const ParallelPlan&)>& allowed) {
  std::optional<ShardedPlan> best;
  for (const AxisUses& uses : uses_on(graph.spec.mesh)) {
    const auto plan = plan_with(uses, graph.spec, base);
    if (!plan || !allowed(*plan)) continue;
    HandSharding own = hand_sharding(graph, uses);
    if (own.choice.empty()) continue;
    ShardedPlan near{*plan, std::move(own), {}, {}};
    near.unlike = unlike_nodes(graph, choice, near.own.choice);
    const bool nearer = !best || near.unlike.size() < best->unlike.size() ||
                        (near.unlike.size() == best->unlike.size() &&
                         near.own.price.seconds < best->own.price.seconds);
    if (nearer) best = std::move(near);
  }
  if (best) {
    const double found = price_of(graph.problem, choice).seconds;
    best->unlike_gain = Seconds(best->own.price.seconds - found);
  }
  return best;
}

}  // namespace planner
