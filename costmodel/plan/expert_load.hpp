// Real routing: how many rows the experts of a layer get, and what follows for the rank that holds
// the fullest of them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "costmodel/config/value.hpp"

namespace costmodel {

// Rows of each expert relative to their mean, a list a layer. Layers are independent of each other.
// Those of a distribution are drawn from it, 65,536 experts in all, and are the same on every
// machine.
using ExpertLoads = std::vector<std::vector<double>>;

// Shares with a symmetric Dirichlet distribution: E gamma variables of shape a over their sum
// (Marsaglia and Tsang 2000, "A simple method for generating gamma variables"). The variance of a
// load is (E - 1) / (E a + 1): balanced as a grows.
ExpertLoads dirichlet_loads(std::int64_t experts, double a);

// Zipf's law: the i-th fullest expert has a share proportional to i^-s, at a place drawn for each
// layer.
ExpertLoads skewed_loads(std::int64_t experts, double s);

// What a training needs of loads: with ep ranks, each of which holds E/ep neighbours (Megatron-LM,
// core/transformer/moe/experts.py: local_expert_indices), the mean over layers of the maximum over
// ranks of the mean load of a rank's experts. A layer's time is that of its fullest rank. Memory is
// counted as if one rank were the fullest in all layers: an upper bound.
struct ExpertLoad {
  std::string form;  // as written, for people; empty: no loads are given
  std::vector<std::pair<std::int64_t, double>> fullest;  // by number of ranks, a divisor of E
  double dropped = 0;  // of all routed rows, the part beyond the capacity of their expert
  bool given() const { return !form.empty(); }
  double of_fullest(std::int64_t ranks) const;  // ranks must divide E
};

// `capacity` is the most rows of an expert relative to the mean; the rest are dropped. 0: none are.
ExpertLoad load_of_ranks(const ExpertLoads& layers, double capacity);

// Reads a list of E loads, {dirichlet: a}, {skew: s} or {histogram: FILE}, a file of lines of E
// numbers each, a line a layer. Only ratios count. Throws ConfigError.
ExpertLoad read_expert_load(const Value& written, std::int64_t experts, double capacity);
inline constexpr const char* expert_load_help =
    "a list of loads, {dirichlet: a}, {skew: s} or {histogram: FILE}";

}  // namespace costmodel
