// Intra-operator parallelism as formulated by Alpa (Zheng et al. 2022, arXiv:2201.12023, section
// 4.2, equation 1): choose one strategy per operator (node) such that
//   (sum of the strategies' costs) + (sum over edges of the cost to reshard a tensor from its
//   producer's layout to its reader's)
// is minimal and the total memory of the strategies is below a limit.
//
// Exact for narrow graphs, such as transformers: variables are eliminated one after another
// (Dechter 1999, "Bucket elimination"), a Lagrange multiplier prices memory, and a dynamic program
// over the states that the bound cannot rule out closes the duality gap. A graph that is too wide
// goes to an integer programming solver, or the result is the best choice found, with a bound.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace planner {

// One strategy of an operator: seconds of computation and communication, and bytes that it keeps on
// a device.
struct ShardingChoice {
  double seconds = 0;
  double bytes = 0;
};

// True for finite time and finite memory >= 0.
bool is_possible(const ShardingChoice& choice);

// Seconds for every pair of strategies; the producer's varies slowest; infinite: incompatible.
struct ShardingEdge {
  int from = 0, to = 0;  // nodes
  std::vector<double> seconds;
};

struct ShardingProblem {
  std::vector<std::vector<ShardingChoice>> nodes;
  std::vector<ShardingEdge> edges;  // parallel edges are allowed
  double memory_limit = std::numeric_limits<double>::infinity();
};

enum class ShardingMethod { elimination, integer_program, descent };

struct ShardingStatistics {
  int width = 0;             // most neighbours of a variable at its elimination
  double states = 0;         // visited by one elimination
  std::uint64_t prices = 0;  // memory prices tried
  std::uint64_t programs = 0;
  std::uint64_t labels = 0;  // kept by the dynamic programs
};

struct Sharding {
  std::vector<int> choice;  // by node; empty when there is none
  double seconds = std::numeric_limits<double>::infinity();
  double bytes = 0;
  // Lower bound on any choice within the limit. It is below `seconds` only when time or space ran
  // out or the graph is too wide. Infinite when there is no choice.
  double lower_bound = 0;
  std::string reason;  // why there is no choice; empty when there is one
  ShardingMethod method = ShardingMethod::elimination;
  ShardingStatistics statistics;
};

struct ShardingLimits {
  double states = 4e8;  // of one elimination; above it the graph is too wide
  double labels = 2e7;  // of one dynamic program
  bool milp = true;     // graphs that are too wide may go to the solver
  double milp_seconds = 60;
};

// The best choice; ties are broken deterministically. `expired` is polled; once it returns true,
// the best choice so far is returned with the bound proved so far. Never throws; strategies that
// are not possible (is_possible) are ignored.
Sharding best_sharding(const ShardingProblem& problem, const std::function<bool()>& expired = {},
                       const ShardingLimits& limits = {});

struct ShardingPrice {
  double seconds = 0, bytes = 0;
};
// The cost of a choice (one strategy per node), summed in the problem's order.
ShardingPrice price_of(const ShardingProblem& problem, const std::vector<int>& choice);

// Why a problem is malformed (sizes do not match) or a node has no strategy; empty for a valid
// problem.
std::string senseless(const ShardingProblem& problem);

}  // namespace planner
