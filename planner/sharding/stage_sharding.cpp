#include "planner/sharding/stage_sharding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "costmodel/base/unit_text.hpp"

namespace planner {

using namespace costmodel;

namespace {

// If time ran out before anything as fast was found, the plan's own choice is the best so far; the
// proved bound stays.
void adopt_quicker(const HandSharding& hand, double memory_limit, Sharding& found) {
  const bool fits = !hand.choice.empty() && hand.price.bytes <= memory_limit;
  if (!fits || hand.price.seconds >= found.seconds) return;
  found.choice = hand.choice;
  found.seconds = hand.price.seconds;
  found.bytes = hand.price.bytes;
  found.lower_bound = std::min(found.lower_bound, found.seconds);
  found.reason.clear();
}

}  // namespace

StageSharding shard_stage(const StageSpec& spec, const ParallelPlan& plan,
                          const Evaluator& evaluator, const std::function<bool()>& expired) {
  StageSharding s{stage_graph(spec, evaluator), {}, {}};
  s.found = best_sharding(s.graph.problem, expired);
  s.hand = hand_sharding(s.graph, plan);
  adopt_quicker(s.hand, s.graph.problem.memory_limit, s.found);
  return s;
}

std::vector<AlikeLayers> alike_layers(const StageGraph& graph, const std::vector<int>& choice) {
  const std::size_t offset = graph.has_input ? 1 : 0;
  std::vector<std::vector<int>> by_layer(graph.spec.layers.size());
  std::vector<std::vector<std::size_t>> nodes(graph.spec.layers.size());
  for (std::size_t v = 0; v < graph.nodes.size(); ++v) {
    const auto l = static_cast<std::size_t>(graph.nodes[v].layer);
    if (by_layer[l].empty()) by_layer[l].push_back(graph.nodes[v].kind);
    by_layer[l].push_back(choice[v + offset]);
    nodes[l].push_back(v);
  }
  std::vector<AlikeLayers> alike;
  std::map<std::vector<int>, std::size_t> known;
  for (std::size_t l = 0; l < by_layer.size(); ++l) {
    const auto [found, fresh] = known.emplace(by_layer[l], alike.size());
    if (fresh) alike.push_back({by_layer[l].front(), {}, nodes[l]});
    alike[found->second].layers.push_back(static_cast<int>(l));
  }
  return alike;
}

std::string told(const StageGraph& graph, const AlikeLayers& alike) {
  const auto& kind = graph.kinds[static_cast<std::size_t>(alike.kind)].layer;
  std::string name = describe(kind.kind);
  const auto all = std::ranges::count(graph.spec.layers, kind);
  const auto count = static_cast<std::ptrdiff_t>(alike.layers.size());
  if (kind.kind == LayerKind::embedding || kind.kind == LayerKind::head) return name;
  const auto* again = kind.again == Recomputed::nothing ? "" : ", recomputed";
  const std::string of = count == all ? "" : fmt::format(" of {}", all);
  return fmt::format("{}{} {} layer{}{}", count, of, name, all == 1 ? "" : "s", again);
}

Seconds resharding_time(const StageGraph& graph, std::size_t node, const std::vector<int>& choice) {
  const auto reader = static_cast<int>(node) + (graph.has_input ? 1 : 0);
  double sum = 0;
  for (const ShardingEdge& e : graph.problem.edges) {
    if (e.to != reader) continue;
    const auto from = static_cast<std::size_t>(choice[static_cast<std::size_t>(e.from)]);
    const auto to = static_cast<std::size_t>(choice[static_cast<std::size_t>(e.to)]);
    sum += e.seconds[from * graph.problem.nodes[static_cast<std::size_t>(e.to)].size() + to];
  }
  return Seconds(sum);
}

}  // namespace planner
