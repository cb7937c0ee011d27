// Stage slicing of a synthetic transformer on synthetic nodes, of any size, for the benchmark and
// the tests. Times and memory have the usual shape: work divides over a submesh at an overhead that
// grows with it, more so between nodes; a stage runs with or without recomputation.
#pragma once

#include <cmath>
#include <random>

#include "planner/solvers/stage_slicing.hpp"

struct SlicingInstance {
  int layers = 96;
  int devices = 64;
  std::int64_t micro_batches = 64;
  // Share by which every range departs at random from its price; 0: equal layers, whose ranges of
  // one length cost the same but for the embedding in front and the loss behind.
  double noise = 0;
  unsigned seed = 1;
};

namespace slicing_instance {

constexpr int node = 8;

// Relative time of `layers` layers on `n` devices, one micro-batch, forward and backward.
inline double seconds(double layers, int n) {
  const double inside = 0.02 * std::log2(std::min(n, node));
  const double across = n > node ? 0.05 + 0.04 * std::log2(n / node) : 0;
  return 1e-3 * (layers * (1 / static_cast<double>(n) + (inside + across) / std::min(n, node)) +
                 0.05 + 0.01 * std::log2(n));
}

// A device holds a hundred units: two thirds of a layer's states on one device, a ninth of that as
// much for a micro-batch's activations, a tenth of it where they are recomputed.
inline int room(double layers, int n, bool recomputed) {
  const double states = 40 * layers / n;
  const double activations = (recomputed ? 0.6 : 6) * layers / n;
  if (states >= 100) return 0;
  const double most = std::floor((100 - states) / activations);
  return most >= 1e6 ? planner::any_in_flight : static_cast<int>(most);
}

}  // namespace slicing_instance

inline planner::SlicingProblem make_problem(const SlicingInstance& i) {
  using slicing_instance::room;
  using slicing_instance::seconds;
  std::mt19937 random(i.seed);
  planner::SlicingProblem p;
  p.layers = i.layers;
  p.devices = i.devices;
  p.micro_batches = i.micro_batches;
  p.clear_ranges();
  const auto sizes = planner::submeshes(i.devices, slicing_instance::node);
  std::vector<std::int32_t> known(static_cast<std::size_t>(i.layers) * 4 + 4, -1);
  for (int first = 0; first < i.layers; ++first) {
    for (int end = first + 1; end <= i.layers; ++end) {
      const bool front = first == 0, back = end == i.layers;
      auto& shared =
          known[static_cast<std::size_t>(end - first) * 4 + (front ? 2 : 0) + (back ? 1 : 0)];
      if (i.noise == 0 && shared >= 0) {
        p.range_class[p.at(first, end)] = shared;
        continue;
      }
      shared = static_cast<std::int32_t>(p.options.size());
      p.range_class[p.at(first, end)] = shared;
      std::vector<planner::StageOption> list;
      const double layers = end - first + (front ? 0.3 : 0) + (back ? 1.2 : 0);
      for (const int n : sizes) {
        const double off = 1 + i.noise * (static_cast<double>(random() % 20001) / 10000 - 1);
        for (const bool again : {false, true}) {
          list.push_back({n, seconds(layers, n) * off * (again ? 1.3 : 1), room(layers, n, again),
                          again ? 1 : 0});
        }
      }
      p.options.push_back(std::move(list));
    }
  }
  return p;
}
