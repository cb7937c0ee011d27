// Elimination of a sharding graph's nodes with a price on memory: the minimum of seconds + price ·
// bytes. For every bucket and every choice of its scope, the tables hold the least cost inside (the
// bucket and those below it) and outside. Internal to best_sharding.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/solvers/sharding_graph.hpp"

namespace planner {

// A table that a bucket reads. The cost is at (sum of the scope's choices times `strides`) + (the
// choice of the bucket's own node) times `own`.
struct BucketInput {
  const double* values = nullptr;
  std::size_t own = 0;
  std::vector<std::size_t> strides;  // by position in the scope; 0: independent of it
};

struct BucketView {
  std::vector<std::size_t> sizes;     // number of strategies of the scope's nodes
  std::vector<BucketInput> edges;     // same order as ShardingBucket::edges
  std::vector<BucketInput> children;  // same order as ShardingBucket::children
};

// Visits all choices of the scope, the last node's varying fastest, with the index of the choice
// and the row offset in every input.
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
  // `graph` and `order` must outlive this object.
  ShardingTables(const ShardingGraph& graph, const EliminationOrder& order);
  ShardingTables(const ShardingTables&) = delete;
  ShardingTables& operator=(const ShardingTables&) = delete;

  // The minimum at a price; infinite when no choice is allowed.
  double solve(double price);
  // The choice found by solve().
  std::vector<int> choice() const;

  // Computes `outside`; call after solve().
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

// The same graph with zero time; forbidden pairs stay forbidden.
ShardingGraph bytes_only(const ShardingGraph& graph);

}  // namespace planner
