#include "planner/solvers/sharding_tables.hpp"

#include <algorithm>
#include <cmath>

#include "planner/solvers/tolerances.hpp"

namespace planner {

namespace {

std::size_t place(const std::vector<int>& scope, int node) {
  return static_cast<std::size_t>(std::ranges::lower_bound(scope, node) - scope.begin());
}

BucketInput edge_input(const ShardingGraph& graph, const ShardingBucket& bucket, int index) {
  const auto& e = graph.edges[at(index)];
  const std::size_t columns = graph.nodes[at(e.b)].size();
  const bool first = e.a == bucket.node;
  BucketInput input{e.seconds.data(), first ? columns : 1,
                    std::vector<std::size_t>(bucket.scope.size(), 0)};
  input.strides[place(bucket.scope, first ? e.b : e.a)] = first ? 1 : columns;
  return input;
}

BucketInput child_input(const ShardingGraph& graph, const ShardingBucket& bucket,
                        const ShardingBucket& child) {
  BucketInput input{nullptr, 0, std::vector<std::size_t>(bucket.scope.size(), 0)};
  std::size_t stride = 1;
  for (std::size_t d = child.scope.size(); d-- > 0;) {
    const int u = child.scope[d];
    (u == bucket.node ? input.own : input.strides[place(bucket.scope, u)]) = stride;
    stride *= graph.nodes[at(u)].size();
  }
  return input;
}

// row[x] = own costs + all inputs at their offsets.
void add_up(const std::vector<double>& own, const std::vector<BucketInput>& inputs,
            const std::vector<std::size_t>& offset, std::vector<double>& row) {
  row = own;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const double* values = inputs[i].values + offset[i];
    const std::size_t stride = inputs[i].own;
    for (std::size_t x = 0; x < row.size(); ++x) row[x] += values[x * stride];
  }
}

}  // namespace

ShardingTables::ShardingTables(const ShardingGraph& graph, const EliminationOrder& order)
    : graph_(&graph),
      order_(&order),
      views_(order.buckets.size()),
      inside_(order.buckets.size()),
      outside_(order.buckets.size()),
      best_(order.buckets.size()) {
  for (std::size_t b = 0; b < order.buckets.size(); ++b) {
    const ShardingBucket& bucket = order.buckets[b];
    inside_[b].resize(bucket.states);
    best_[b].resize(bucket.states);
    for (const int u : bucket.scope) views_[b].sizes.push_back(graph.nodes[at(u)].size());
    for (const int e : bucket.edges) views_[b].edges.push_back(edge_input(graph, bucket, e));
    for (const int c : bucket.children) {
      views_[b].children.push_back(child_input(graph, bucket, order.buckets[at(c)]));
      views_[b].children.back().values = inside_[at(c)].data();
    }
  }
}

std::vector<BucketInput> ShardingTables::inputs_of(std::size_t bucket) const {
  std::vector<BucketInput> inputs = views_[bucket].edges;
  inputs.insert(inputs.end(), views_[bucket].children.begin(), views_[bucket].children.end());
  return inputs;
}

std::vector<double> ShardingTables::priced(std::size_t bucket) const {
  const auto& node = graph_->nodes[at(order_->buckets[bucket].node)];
  std::vector<double> own(node.size());
  for (std::size_t x = 0; x < own.size(); ++x) own[x] = node.seconds[x] + price_ * node.bytes[x];
  return own;
}

double ShardingTables::solve(double price) {
  price_ = price;
  std::vector<double> row;
  for (std::size_t b = 0; b < views_.size(); ++b) {
    const auto inputs = inputs_of(b);
    const auto own = priced(b);
    for_each_state(views_[b].sizes, inputs, [&](std::size_t state, const auto& offset) {
      add_up(own, inputs, offset, row);
      const auto least = std::ranges::min_element(row);
      inside_[b][state] = *least;
      best_[b][state] = static_cast<std::uint32_t>(least - row.begin());
    });
  }
  return inside_.empty() ? 0 : inside_.back().front();
}

std::vector<int> ShardingTables::choice() const {
  std::vector<int> choice(graph_->nodes.size(), 0);
  for (std::size_t b = views_.size(); b-- > 0;) {
    const ShardingBucket& bucket = order_->buckets[b];
    std::size_t state = 0;
    for (std::size_t d = 0; d < bucket.scope.size(); ++d)
      state = state * views_[b].sizes[d] + at(choice[at(bucket.scope[d])]);
    choice[at(bucket.node)] = static_cast<int>(best_[b][state]);
  }
  return choice;
}

// From the root down: the total minimum for each choice of a child's scope, less the cost inside
// the child.
void ShardingTables::complete() {
  std::vector<double> row;
  for (std::size_t b = views_.size(); b-- > 0;) {
    const auto& children = order_->buckets[b].children;
    if (order_->buckets[b].parent < 0) outside_[b].assign(1, 0);
    if (children.empty()) continue;
    const auto inputs = inputs_of(b);
    const std::size_t first_child = views_[b].edges.size();
    const auto own = priced(b);
    for (const int c : children) outside_[at(c)].assign(inside_[at(c)].size(), infinity);
    for_each_state(views_[b].sizes, inputs, [&](std::size_t state, const auto& offset) {
      add_up(own, inputs, offset, row);
      for (std::size_t k = 0; k < children.size(); ++k) {
        auto& outside = outside_[at(children[k])];
        const std::size_t stride = inputs[first_child + k].own;
        for (std::size_t x = 0; x < row.size(); ++x) {
          double& least = outside[offset[first_child + k] + x * stride];
          least = std::min(least, row[x] + outside_[b][state]);
        }
      }
    });
    for (const int c : children) {
      for (std::size_t i = 0; i < outside_[at(c)].size(); ++i) {
        double& least = outside_[at(c)][i];
        least = std::isinf(inside_[at(c)][i]) ? infinity : least - inside_[at(c)][i];
      }
    }
  }
}

ShardingGraph bytes_only(const ShardingGraph& graph) {
  ShardingGraph bytes = graph;
  const auto only_barred = [](std::vector<double>& all) {
    for (double& seconds : all) seconds = std::isinf(seconds) ? infinity : 0;
  };
  for (auto& node : bytes.nodes) only_barred(node.seconds);
  for (auto& edge : bytes.edges) only_barred(edge.seconds);
  return bytes;
}

}  // namespace planner
