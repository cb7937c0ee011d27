// A sharding problem prepared for elimination: dominated strategies removed, one edge per pair of
// nodes, and the elimination order. Internal to best_sharding.
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
    std::vector<double> seconds;  // a's strategy varies slowest; infinite: incompatible
  };
  std::vector<Node> nodes;
  std::vector<Edge> edges;
  double memory_limit = 0;

  std::vector<int> source_of(const std::vector<int>& choice) const;
  ShardingPrice price_of(const std::vector<int>& choice) const;
};

// Removes strategies with infinite time and those dominated by another of the same node in time,
// memory and on every edge. The problem must be well-formed (see senseless).
ShardingGraph reduced(const ShardingProblem& problem);

// A node being eliminated: the least cost that it adds is tabulated for every choice of its
// remaining neighbours (its scope).
struct ShardingBucket {
  int node = 0;
  std::vector<int> scope;     // nodes, ascending
  std::vector<int> edges;     // edges of the graph, eliminated with the node
  std::vector<int> children;  // earlier buckets whose result depends on this node
  int parent = -1;            // the bucket that reads this one's result; -1: none
  std::size_t states = 1;     // number of choices of the scope
};

struct EliminationOrder {
  std::vector<ShardingBucket> buckets;
  int width = 0;
  double states = 0;  // sum over buckets: choices of the scope and the node
};

// Greedy order: least fill-in, then fewest states, then the smallest node index.
EliminationOrder elimination_order(const ShardingGraph& graph);

}  // namespace planner
