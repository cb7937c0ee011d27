// Closes the gap that a price on memory leaves: the same elimination with, instead of the least
// cost, all (time, memory) pairs of which none betters another, without those that the bound rules
// out. Of use inside best_sharding only.
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

  // `priced` solved at `price` and completed; `bytes` solved for bytes alone and completed.
  ShardingFronts(const ShardingTables& priced, double price, const ShardingTables& bytes);

  // Looks through every choice within memory whose bound is below `cutoff`; where one takes less
  // than that, `choice()` is the best of all. `full` when there are more than `most` labels.
  Outcome solve(double cutoff, double most, const std::function<bool()>& expired);
  const std::optional<std::vector<int>>& choice() const { return choice_; }
  double seconds() const { return seconds_; }
  std::uint64_t labels() const { return labels_; }  // of all calls

 private:
  struct Label {
    double seconds, bytes;
    std::int32_t own;   // the node's choice
    std::size_t picks;  // where the labels of the children begin in Front::picks
  };
  struct Front {
    std::vector<std::size_t> first;  // label of each state; one more at the end
    std::vector<Label> labels;
    std::vector<std::uint32_t> picks;  // of each label, one a child
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
  std::vector<std::pair<Label, std::vector<std::uint32_t>>> found_;  // of the state at hand
  std::optional<std::vector<int>> choice_;
  double seconds_ = 0;
  std::uint64_t labels_ = 0;
};

}  // namespace planner
