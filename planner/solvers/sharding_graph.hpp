// A sharding problem made ready for elimination: no strategy that cannot be in the best choice, one
// edge for each pair of nodes, and the order in which nodes are eliminated. Of use inside
// best_sharding only.
#pragma once

#include <cstddef>
#include <vector>

#include "planner/solvers/sharding_problem.hpp"

namespace planner {

struct ShardingGraph {
  struct Node {
    std::vector<double> seconds, bytes;
    std::vector<int> source;  // index of the strategy in the problem
    std::size_t size() const { return source.size(); }
  };
  struct Edge {
    int a = 0, b = 0;             // a < b
    std::vector<double> seconds;  // a's strategy varying slowest; infinite where not together
  };
  std::vector<Node> nodes;
  std::vector<Edge> edges;
  double memory_limit = 0;

  std::vector<int> source_of(const std::vector<int>& choice) const;
  ShardingPrice price_of(const std::vector<int>& choice) const;
};

// Strategies that take for ever, and those that another of the same node betters in time, memory
// and on every edge, are gone. The problem must make sense.
ShardingGraph reduced(const ShardingProblem& problem);

// A node on its way out: the least of what it adds is found for every choice of the neighbours it
// still has (its scope).
struct ShardingBucket {
  int node = 0;
  std::vector<int> scope;     // nodes, ascending
  std::vector<int> edges;     // of the graph, that leave with the node
  std::vector<int> children;  // earlier buckets whose result depends on this node
  int parent = -1;            // the bucket that takes in this one's; -1: the last bucket
  std::size_t states = 1;     // choices of the scope
};

struct EliminationOrder {
  std::vector<ShardingBucket> buckets;
  int width = 0;
  double states = 0;  // choices of all scopes and their nodes
};

// Least fill-in first, then least states, then the first node.
EliminationOrder elimination_order(const ShardingGraph& graph);

}  // namespace planner
