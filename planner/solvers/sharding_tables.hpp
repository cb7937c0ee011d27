// Elimination of a sharding graph's nodes with a price on memory: the least of
// seconds + price · bytes, and for every bucket and choice of its scope what lies inside (the
// bucket and those below it) and outside takes at least. Of use inside best_sharding only.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/solvers/sharding_graph.hpp"

namespace planner {

// A table that a bucket reads: for choices of the scope and of the bucket's own node, its cost lies
// at (sum of the scope's choices times `strides`) + choice of the node times `own`.
struct BucketInput {
  const double* values = nullptr;
  std::size_t own = 0;
  std::vector<std::size_t> strides;  // by position in the scope; 0 where it does not matter
};

struct BucketView {
  std::vector<std::size_t> sizes;     // strategies of the scope's nodes
  std::vector<BucketInput> edges;     // as ShardingBucket::edges
  std::vector<BucketInput> children;  // as ShardingBucket::children
};

// Visits all choices of the scope, the last node's varying fastest: their index, and for every
// input where its row begins.
template <class Visit>
void for_each_state(const std::vector<std::size_t>& sizes, const std::vector<BucketInput>& inputs,
                    Visit visit) {
  std::vector<std::size_t> digit(sizes.size(), 0), offset(inputs.size(), 0);
  for (std::size_t state = 0;; ++state) {
    visit(state, offset);
    std::size_t d = sizes.size();
    while (d > 0 && digit[d - 1] + 1 == sizes[d - 1]) {
      --d;
      for (std::size_t i = 0; i < inputs.size(); ++i) offset[i] -= inputs[i].strides[d] * digit[d];
      digit[d] = 0;
    }
    if (d == 0) return;
    ++digit[d - 1];
    for (std::size_t i = 0; i < inputs.size(); ++i) offset[i] += inputs[i].strides[d - 1];
  }
}

class ShardingTables {
 public:
  // The graph and the order must outlive it.
  ShardingTables(const ShardingGraph& graph, const EliminationOrder& order);
  ShardingTables(const ShardingTables&) = delete;
  ShardingTables& operator=(const ShardingTables&) = delete;

  // Infinite when no choice is allowed.
  double solve(double price);
  // The choice that solve() found.
  std::vector<int> choice() const;

  // Readies `outside` after solve().
  void complete();
  double inside(std::size_t bucket, std::size_t state) const { return inside_[bucket][state]; }
  double outside(std::size_t bucket, std::size_t state) const { return outside_[bucket][state]; }

  const BucketView& view(std::size_t bucket) const { return views_[bucket]; }
  const ShardingGraph& graph() const { return *graph_; }
  const EliminationOrder& order() const { return *order_; }

 private:
  std::vector<BucketInput> inputs_of(std::size_t bucket) const;
  std::vector<double> priced(std::size_t bucket) const;

  const ShardingGraph* graph_;
  const EliminationOrder* order_;
  double price_ = 0;
  std::vector<BucketView> views_;
  std::vector<std::vector<double>> inside_, outside_;  // by bucket and state
  std::vector<std::vector<std::uint32_t>> best_;       // the node's own choice there
};

// The same graph with bytes alone: time costs nothing, but what was not allowed still is not.
ShardingGraph bytes_only(const ShardingGraph& graph);

}  // namespace planner
