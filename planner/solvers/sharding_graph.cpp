#include "planner/solvers/sharding_graph.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "planner/solvers/tolerances.hpp"

namespace planner {

namespace {

double allowed(double seconds) {
  if (!std::isfinite(seconds)) return infinity;
  return seconds;
}

// The nodes, restricted to strategies with finite costs.
std::vector<ShardingGraph::Node> finite_nodes(const ShardingProblem& problem) {
  std::vector<ShardingGraph::Node> nodes;
  for (const auto& choices : problem.nodes) {
    ShardingGraph::Node node;
    for (std::size_t i = 0; i < choices.size(); ++i) {
      if (!is_possible(choices[i])) continue;
      node.seconds.push_back(choices[i].seconds);
      node.bytes.push_back(choices[i].bytes);
      node.source.push_back(static_cast<int>(i));
    }
    nodes.push_back(std::move(node));
  }
  return nodes;
}

// Merges all edges between two nodes; edges from a node to itself are added to its costs.
void add_edges(const ShardingProblem& problem, ShardingGraph& graph) {
  std::map<std::pair<int, int>, std::vector<double>> tables;
  for (const ShardingEdge& e : problem.edges) {
    auto& from = graph.nodes[at(e.from)];
    auto& to = graph.nodes[at(e.to)];
    const std::size_t columns = problem.nodes[at(e.to)].size();
    const auto cost = [&](std::size_t i, std::size_t j) {
      return allowed(e.seconds[at(from.source[i]) * columns + at(to.source[j])]);
    };
    if (e.from == e.to) {
      for (std::size_t i = 0; i < from.size(); ++i) from.seconds[i] += cost(i, i);
      continue;
    }
    const bool forward = e.from < e.to;
    auto& table = tables[forward ? std::pair(e.from, e.to) : std::pair(e.to, e.from)];
    table.resize(from.size() * to.size(), 0);
    for (std::size_t i = 0; i < from.size(); ++i) {
      for (std::size_t j = 0; j < to.size(); ++j)
        table[forward ? i * to.size() + j : j * from.size() + i] += cost(i, j);
    }
  }
  for (auto& [pair, table] : tables)
    graph.edges.push_back({pair.first, pair.second, std::move(table)});
}

// Whether strategy i of node v dominates strategy j; among equals the first one does.
bool betters(const ShardingGraph& graph, const std::vector<int>& edges, int v, std::size_t i,
             std::size_t j) {
  const auto& node = graph.nodes[at(v)];
  if (node.seconds[i] > node.seconds[j] || node.bytes[i] > node.bytes[j]) return false;
  bool equal = node.seconds[i] == node.seconds[j] && node.bytes[i] == node.bytes[j];
  for (const int index : edges) {
    const auto& e = graph.edges[at(index)];
    const bool first = e.a == v;
    const std::size_t columns = graph.nodes[at(e.b)].size();
    const std::size_t others = graph.nodes[at(first ? e.b : e.a)].size();
    for (std::size_t k = 0; k < others; ++k) {
      const double a = e.seconds[first ? i * columns + k : k * columns + i];
      const double b = e.seconds[first ? j * columns + k : k * columns + j];
      if (a > b) return false;
      equal = equal && a == b;
    }
  }
  return !equal || i < j;
}

std::vector<std::size_t> unbettered(const ShardingGraph& graph, const std::vector<int>& edges,
                                    int v) {
  std::vector<std::size_t> kept;
  const std::size_t n = graph.nodes[at(v)].size();
  for (std::size_t j = 0; j < n; ++j) {
    bool worse = false;
    for (std::size_t i = 0; i < n && !worse; ++i) worse = i != j && betters(graph, edges, v, i, j);
    if (!worse) kept.push_back(j);
  }
  return kept;
}

// Restricts node v to these strategies, also on its edges.
void keep(ShardingGraph& graph, const std::vector<int>& edges, int v,
          const std::vector<std::size_t>& kept) {
  auto& node = graph.nodes[at(v)];
  for (const int index : edges) {
    auto& e = graph.edges[at(index)];
    const bool first = e.a == v;
    const std::size_t columns = graph.nodes[at(e.b)].size();
    const std::size_t others = graph.nodes[at(first ? e.b : e.a)].size();
    std::vector<double> table(kept.size() * others);
    for (std::size_t i = 0; i < kept.size(); ++i) {
      for (std::size_t k = 0; k < others; ++k) {
        table[first ? i * others + k : k * kept.size() + i] =
            e.seconds[first ? kept[i] * columns + k : k * columns + kept[i]];
      }
    }
    e.seconds = std::move(table);
  }
  ShardingGraph::Node smaller;
  for (const std::size_t i : kept) {
    smaller.seconds.push_back(node.seconds[i]);
    smaller.bytes.push_back(node.bytes[i]);
    smaller.source.push_back(node.source[i]);
  }
  node = std::move(smaller);
}

std::vector<std::vector<int>> edges_by_node(const ShardingGraph& graph) {
  std::vector<std::vector<int>> edges(graph.nodes.size());
  for (std::size_t i = 0; i < graph.edges.size(); ++i) {
    edges[at(graph.edges[i].a)].push_back(static_cast<int>(i));
    edges[at(graph.edges[i].b)].push_back(static_cast<int>(i));
  }
  return edges;
}

}  // namespace

std::vector<int> ShardingGraph::source_of(const std::vector<int>& choice) const {
  std::vector<int> sources(choice.size());
  for (std::size_t v = 0; v < choice.size(); ++v) sources[v] = nodes[v].source[at(choice[v])];
  return sources;
}

ShardingPrice ShardingGraph::price_of(const std::vector<int>& choice) const {
  ShardingPrice sum;
  for (std::size_t v = 0; v < nodes.size(); ++v) {
    sum.seconds += nodes[v].seconds[at(choice[v])];
    sum.bytes += nodes[v].bytes[at(choice[v])];
  }
  for (const Edge& e : edges)
    sum.seconds += e.seconds[at(choice[at(e.a)]) * nodes[at(e.b)].size() + at(choice[at(e.b)])];
  return sum;
}

ShardingGraph reduced(const ShardingProblem& problem) {
  ShardingGraph graph;
  graph.memory_limit = problem.memory_limit;
  graph.nodes = finite_nodes(problem);
  add_edges(problem, graph);
  const auto edges = edges_by_node(graph);
  for (int v = 0; v < static_cast<int>(graph.nodes.size()); ++v) {
    const auto kept = unbettered(graph, edges[at(v)], v);
    if (kept.size() < graph.nodes[at(v)].size()) keep(graph, edges[at(v)], v, kept);
  }
  return graph;
}

namespace {

class Eliminator {
 public:
  explicit Eliminator(const ShardingGraph& graph)
      : graph_(graph),
        incident_(edges_by_node(graph)),
        neighbours_(graph.nodes.size()),
        position_(graph.nodes.size(), -1),
        costs_(graph.nodes.size()) {
    for (const auto& e : graph.edges) {
      neighbours_[at(e.a)].insert(e.b);
      neighbours_[at(e.b)].insert(e.a);
    }
    for (int v = 0; v < static_cast<int>(graph.nodes.size()); ++v) refresh(v);
  }

  EliminationOrder run() {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) eliminate(next());
    link();
    return std::move(order_);
  }

 private:
  struct Cost {
    double fill = 0, states = 1;
    bool operator<(const Cost& o) const {
      return fill != o.fill ? fill < o.fill : states < o.states;
    }
  };

  void refresh(int v) {
    Cost cost;
    const auto& mine = neighbours_[at(v)];
    for (auto a = mine.begin(); a != mine.end(); ++a) {
      cost.states *= static_cast<double>(graph_.nodes[at(*a)].size());
      for (auto b = std::next(a); b != mine.end(); ++b)
        cost.fill += neighbours_[at(*a)].count(*b) == 0 ? 1 : 0;
    }
    costs_[at(v)] = cost;
  }

  int next() const {
    int best = -1;
    for (int v = 0; v < static_cast<int>(costs_.size()); ++v) {
      if (position_[at(v)] < 0 && (best < 0 || costs_[at(v)] < costs_[at(best)])) best = v;
    }
    return best;
  }

  void eliminate(int v) {
    const std::set<int> scope = std::move(neighbours_[at(v)]);
    ShardingBucket bucket;
    bucket.node = v;
    bucket.scope.assign(scope.begin(), scope.end());
    for (const int e : incident_[at(v)]) {
      const int other = graph_.edges[at(e)].a == v ? graph_.edges[at(e)].b : graph_.edges[at(e)].a;
      if (position_[at(other)] < 0) bucket.edges.push_back(e);
    }
    double states = 1;
    for (const int u : scope) states *= static_cast<double>(graph_.nodes[at(u)].size());
    if (states < 1e15) bucket.states = static_cast<std::size_t>(states);
    order_.states += states * static_cast<double>(graph_.nodes[at(v)].size());
    order_.width = std::max(order_.width, static_cast<int>(scope.size()));
    position_[at(v)] = static_cast<int>(order_.buckets.size());
    order_.buckets.push_back(std::move(bucket));
    std::set<int> changed = scope;
    for (const int u : scope) {
      neighbours_[at(u)].erase(v);
      for (const int w : scope) {
        if (u != w) neighbours_[at(u)].insert(w);
      }
    }
    for (const int u : scope) changed.insert(neighbours_[at(u)].begin(), neighbours_[at(u)].end());
    for (const int u : changed) refresh(u);
  }

  void link() {
    for (std::size_t i = 0; i < order_.buckets.size(); ++i) {
      ShardingBucket& bucket = order_.buckets[i];
      for (const int u : bucket.scope) {
        if (bucket.parent < 0 || position_[at(u)] < bucket.parent) bucket.parent = position_[at(u)];
      }
      // Separate components are attached to the last bucket, so that there is one root.
      if (bucket.parent < 0 && i + 1 < order_.buckets.size())
        bucket.parent = static_cast<int>(order_.buckets.size()) - 1;
      if (bucket.parent >= 0)
        order_.buckets[at(bucket.parent)].children.push_back(static_cast<int>(i));
    }
  }

  const ShardingGraph& graph_;
  std::vector<std::vector<int>> incident_;
  std::vector<std::set<int>> neighbours_;
  std::vector<int> position_;  // of an eliminated node in the order; -1 for the others
  std::vector<Cost> costs_;
  EliminationOrder order_;
};

}  // namespace

EliminationOrder elimination_order(const ShardingGraph& graph) { return Eliminator(graph).run(); }

}  // namespace planner
