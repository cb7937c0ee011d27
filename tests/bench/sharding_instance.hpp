// Sharding problems generated from a seed: random ones, and ones shaped like a transformer.
#pragma once

#include <random>
#include <vector>

#include "planner/solvers/sharding_problem.hpp"

struct RandomSharding {
  int nodes = 6, choices = 3, extra_edges = 2;  // in addition to a chain through all nodes
  double forbidden = 0.1;                       // fraction of forbidden pairs
  bool rounded = false;                         // small integers, so that many are equal
};

inline double drawn(std::mt19937_64& random) {  // the same with every standard library
  return static_cast<double>(random() >> 11) * 0x1.0p-53;
}

inline planner::ShardingProblem random_sharding(const RandomSharding& shape,
                                                std::mt19937_64& random) {
  planner::ShardingProblem p;
  const auto number = [&](double most) {
    const double value = most * drawn(random);
    return shape.rounded ? static_cast<double>(static_cast<int>(value)) : value;
  };
  for (int v = 0; v < shape.nodes; ++v) {
    auto& choices = p.nodes.emplace_back();
    const auto count =
        1 + random() % static_cast<unsigned>(shape.choices);  // NOLINT: small bias is fine
    for (std::uint64_t i = 0; i < count; ++i) choices.push_back({number(10), number(8)});
  }
  const auto join = [&](int from, int to) {
    planner::ShardingEdge e{from, to, {}};
    const auto pairs = p.nodes[static_cast<std::size_t>(from)].size() *
                       p.nodes[static_cast<std::size_t>(to)].size();
    for (std::size_t i = 0; i < pairs; ++i) {
      const bool barred = drawn(random) < shape.forbidden;
      e.seconds.push_back(barred ? std::numeric_limits<double>::infinity() : number(6));
    }
    p.edges.push_back(e);
  };
  for (int v = 1; v < shape.nodes; ++v) join(v - 1, v);
  for (int i = 0; i < shape.extra_edges && shape.nodes > 0; ++i) {
    const auto n = static_cast<std::uint64_t>(shape.nodes);
    join(static_cast<int>(random() % n), static_cast<int>(random() % n));
  }
  return p;
}
