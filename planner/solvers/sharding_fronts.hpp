// Closes the duality gap of the memory price: the same elimination, but with the Pareto front of
// (time, memory) pairs instead of the least cost, without the pairs that the bound rules out.
// Internal to best_sharding.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "planner/solvers/sharding_tables.hpp"

namespace planner {

class ShardingFronts {
 public:
  enum class Outcome { finished, full, expired };

  // `priced` must be solved at `price` and completed; `bytes` solved for bytes only and completed.
  ShardingFronts(const ShardingTables& priced, double price, const ShardingTables& bytes);

  // Searches all choices within the memory limit whose bound is below `cutoff`. If one takes less
  // than `cutoff`, `choice()` is the optimum. Returns `full` for more than `most` labels.
  Outcome solve(double cutoff, double most, const std::function<bool()>& expired);
  const std::optional<std::vector<int>>& choice() const { return choice_; }
  double seconds() const { return seconds_; }
  std::uint64_t labels() const { return labels_; }  // over all calls

 private:
  struct Label {
    double seconds, bytes;
    std::int32_t own;   // the node's choice
    std::size_t picks;  // offset of the children's labels in Front::picks
  };
  struct Front {
    std::vector<std::size_t> first;  // first label of each state, plus an end
    std::vector<Label> labels;
    std::vector<std::uint32_t> picks;  // by label, one per child
  };
  struct Partial {  // a bucket's choice with labels of some of its children
    double seconds, bytes;
    std::vector<std::uint32_t> picks;
  };
  void combine(const Front& child, std::size_t state, std::vector<Partial>& partials) const;
  void extend(std::size_t bucket, std::size_t state, const std::vector<std::size_t>& offset,
              double cutoff);
  void settle(std::size_t bucket);
  void trace(std::size_t bucket, const Label& label, std::vector<int>& choice) const;

  const ShardingTables* tables_;
  const ShardingTables* bytes_;
  double price_, limit_;
  std::vector<Front> fronts_;
  std::vector<std::pair<Label, std::vector<std::uint32_t>>> found_;  // of the current state
  std::optional<std::vector<int>> choice_;
  double seconds_ = 0;
  std::uint64_t labels_ = 0;
};

}  // namespace planner
