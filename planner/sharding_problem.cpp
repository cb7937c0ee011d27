#include "planner/sharding_problem.hpp"

#include <fmt/format.h>

#include <cmath>

namespace planner {

ShardingPrice price_of(const ShardingProblem& problem, const std::vector<int>& choice) {
  ShardingPrice sum;
  for (std::size_t v = 0; v < problem.nodes.size(); ++v) {
    const ShardingChoice& c = problem.nodes[v][static_cast<std::size_t>(choice[v])];
    sum.seconds += c.seconds;
    sum.bytes += c.bytes;
  }
  for (const ShardingEdge& e : problem.edges) {
    const auto from = static_cast<std::size_t>(choice[static_cast<std::size_t>(e.from)]);
    const auto to = static_cast<std::size_t>(choice[static_cast<std::size_t>(e.to)]);
    sum.seconds += e.seconds[from * problem.nodes[static_cast<std::size_t>(e.to)].size() + to];
  }
  return sum;
}

bool is_possible(const ShardingChoice& choice) {
  return std::isfinite(choice.seconds) && std::isfinite(choice.bytes) && choice.bytes >= 0;
}

std::string senseless(const ShardingProblem& problem) {
  const auto n = static_cast<int>(problem.nodes.size());
  for (int v = 0; v < n; ++v) {
    bool any = false;
    for (const ShardingChoice& c : problem.nodes[static_cast<std::size_t>(v)])
      any = any || is_possible(c);
    if (!any) return fmt::format("node {} has no strategy with a finite time and memory", v);
  }
  for (std::size_t i = 0; i < problem.edges.size(); ++i) {
    const ShardingEdge& e = problem.edges[i];
    if (e.from < 0 || e.from >= n || e.to < 0 || e.to >= n)
      return fmt::format("edge {} joins nodes that are not there", i);
    const std::size_t pairs = problem.nodes[static_cast<std::size_t>(e.from)].size() *
                              problem.nodes[static_cast<std::size_t>(e.to)].size();
    if (e.seconds.size() != pairs) {
      return fmt::format("edge {} has {} costs for {} pairs of strategies", i, e.seconds.size(),
                         pairs);
    }
  }
  if (std::isnan(problem.memory_limit)) return "the memory limit is not a number";
  return {};
}

}  // namespace planner
