#include "planner/solvers/sharding_descent.hpp"

#include <algorithm>
#include <utility>

#include "planner/solvers/milp.hpp"
#include "planner/solvers/tolerances.hpp"

namespace planner {

namespace {

ShardingProblem without_edges(const ShardingGraph& graph) {
  ShardingProblem problem;
  problem.memory_limit = graph.memory_limit;
  for (const auto& node : graph.nodes) {
    auto& choices = problem.nodes.emplace_back();
    for (std::size_t i = 0; i < node.size(); ++i)
      choices.push_back({node.seconds[i], node.bytes[i]});
  }
  return problem;
}

// Keeps the edges whose costs vary most; drops those that would make elimination too large and adds
// each one's least cost to `constant`.
ShardingProblem narrowed(const ShardingGraph& graph, double states, double& constant) {
  ShardingProblem problem = without_edges(graph);
  constant = 0;
  std::vector<std::pair<double, int>> spread;
  for (std::size_t i = 0; i < graph.edges.size(); ++i) {
    const auto [least, most] = std::ranges::minmax_element(graph.edges[i].seconds);
    spread.emplace_back(*most - *least, static_cast<int>(i));
  }
  std::ranges::stable_sort(spread, [](const auto& a, const auto& b) { return a.first > b.first; });
  ShardingGraph kept;
  kept.nodes = graph.nodes;
  for (const auto& [width, index] : spread) {
    const auto& edge = graph.edges[at(index)];
    kept.edges.push_back(edge);
    if (elimination_order(kept).states <= states) continue;
    kept.edges.pop_back();
    constant += *std::ranges::min_element(edge.seconds);
  }
  for (const auto& edge : kept.edges) problem.edges.push_back({edge.a, edge.b, edge.seconds});
  return problem;
}

// Coordinate descent: changes one node at a time while that makes the choice faster within memory;
// from a choice above the limit, first while that reduces memory.
class Descent {
 public:
  Descent(const ShardingGraph& graph, std::vector<int> choice)
      : graph_(graph), choice_(std::move(choice)), price_(graph.price_of(choice_)) {}

  bool run(const std::function<bool()>& expired) {
    bool moved = true;
    while (moved && !(expired && expired())) {
      moved = false;
      for (std::size_t v = 0; v < choice_.size(); ++v) moved = step(v) || moved;
    }
    return price_.bytes <= graph_.memory_limit && price_.seconds < infinity;
  }
  const std::vector<int>& choice() const { return choice_; }
  const ShardingPrice& price() const { return price_; }

 private:
  bool better(const ShardingPrice& a, const ShardingPrice& b) const {
    const double beyond_a = std::max(0.0, a.bytes - graph_.memory_limit);
    const double beyond_b = std::max(0.0, b.bytes - graph_.memory_limit);
    const bool barred_a = a.seconds == infinity, barred_b = b.seconds == infinity;
    if (barred_a != barred_b) return barred_b;
    return beyond_a != beyond_b ? beyond_a < beyond_b : a.seconds < b.seconds;
  }

  bool step(std::size_t v) {
    const int before = choice_[v];
    int best = before;
    for (int x = 0; x < static_cast<int>(graph_.nodes[v].size()); ++x) {
      choice_[v] = x;
      const ShardingPrice price = graph_.price_of(choice_);
      if (!better(price, price_)) continue;
      price_ = price;
      best = x;
    }
    choice_[v] = best;
    return best != before;
  }

  const ShardingGraph& graph_;
  std::vector<int> choice_;
  ShardingPrice price_;
};

}  // namespace

Sharding best_of_wide(const ShardingProblem& problem, const ShardingGraph& graph,
                      const EliminationOrder& order, const std::function<bool()>& expired,
                      const ShardingLimits& limits) {
  if (limits.milp && milp_available()) {
    Sharding solved = solve_milp(problem, limits.milp_seconds);
    solved.statistics.width = order.width;
    solved.statistics.states = order.states;
    if (!solved.choice.empty() || solved.lower_bound == infinity) return solved;
  }
  double constant = 0;
  const ShardingProblem narrow = narrowed(graph, limits.states, constant);
  ShardingLimits any_width = limits;  // it is narrow enough now, whatever the order
  any_width.states = infinity;
  Sharding found = best_sharding(narrow, expired, any_width);
  found.method = ShardingMethod::descent;
  found.statistics.width = order.width;
  found.statistics.states = order.states;
  if (found.choice.empty()) return found;  // then the full problem has none either, or time ran out
  const double bound = found.lower_bound + constant;
  Descent descent(graph, found.choice);
  if (!descent.run(expired)) {
    found.choice.clear();
    found.seconds = infinity;
    found.reason = "the graph is too wide to search, and no choice within memory was found";
  } else {
    found.choice = graph.source_of(descent.choice());
    found.seconds = descent.price().seconds;
    found.bytes = descent.price().bytes;
  }
  found.lower_bound = bound;
  return found;
}

}  // namespace planner
