// Intra-operator parallelism as Alpa states it (Zheng et al. 2022, arXiv:2201.12023, section 4.2,
// equation 1): every operator (node) takes one of its strategies, and
//     (sum of the strategies' costs) + (sum over edges of what it costs to bring a tensor from the
//     layout its producer leaves to the one its reader wants)
// is least, with the strategies' memory together below a limit.
//
// Exact where the graph is narrow, as transformers are: variables are eliminated one after another
// (Dechter 1999, "Bucket elimination"), a Lagrange multiplier prices memory, and the gap that this
// leaves is closed by a dynamic program over the states that the bound cannot rule out. Too wide a
// graph goes to an integer programming solver, or its best found comes with a bound.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace planner {

// One strategy of an operator: seconds of computing and communicating, bytes it keeps on a device.
struct ShardingChoice {
  double seconds = 0;
  double bytes = 0;
};

// Finite time, finite memory not below zero.
bool is_possible(const ShardingChoice& choice);

// Seconds for every pair of strategies, the producer's varying slowest; infinite: not together.
struct ShardingEdge {
  int from = 0, to = 0;  // nodes
  std::vector<double> seconds;
};

struct ShardingProblem {
  std::vector<std::vector<ShardingChoice>> nodes;
  std::vector<ShardingEdge> edges;  // any number between two nodes
  double memory_limit = std::numeric_limits<double>::infinity();
};

enum class ShardingMethod { elimination, integer_program, descent };

struct ShardingStatistics {
  int width = 0;             // most neighbours a variable has when it is eliminated
  double states = 0;         // that one elimination looks at
  std::uint64_t prices = 0;  // of memory, tried
  std::uint64_t programs = 0;
  std::uint64_t labels = 0;  // that these kept
};

struct Sharding {
  std::vector<int> choice;  // of each node; empty when there is none
  double seconds = std::numeric_limits<double>::infinity();
  double bytes = 0;
  // No choice within the limit takes less; below `seconds` only when time or room ran out or the
  // graph is too wide. Infinite when there is none.
  double lower_bound = 0;
  std::string reason;  // why there is none; empty where there is one
  ShardingMethod method = ShardingMethod::elimination;
  ShardingStatistics statistics;
};

struct ShardingLimits {
  double states = 4e8;  // of one elimination; above it the graph is too wide
  double labels = 2e7;  // of one dynamic program
  bool milp = true;     // a graph too wide may go to the integer programming solver
  double milp_seconds = 60;
};

// The best choice; among equals the same one for the same input. `expired` is asked now and then;
// once it says yes, the best so far is returned with what has been proved. Never throws; strategies
// that are not possible are left out.
Sharding best_sharding(const ShardingProblem& problem, const std::function<bool()>& expired = {},
                       const ShardingLimits& limits = {});

struct ShardingPrice {
  double seconds = 0, bytes = 0;
};
// What a choice costs, summed as the problem lists it. One choice for each node.
ShardingPrice price_of(const ShardingProblem& problem, const std::vector<int>& choice);

// What makes no problem of it (sizes that do not match), or leaves a node without a strategy; empty
// when it is one.
std::string senseless(const ShardingProblem& problem);

}  // namespace planner
