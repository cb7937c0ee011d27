// Enumerates all slicings: the reference for stage slicing over one or more groups of devices.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "planner/solvers/stage_slicing.hpp"

namespace slicing {

using planner::Slicing;
using planner::SlicingProblem;
using planner::StageOption;

constexpr double infinity = std::numeric_limits<double>::infinity();

// Every way to cut the layers and to choose options, from the last layer of the last group on.
class BruteForce {
 public:
  explicit BruteForce(std::vector<SlicingProblem> groups) : groups_(std::move(groups)) {
    from(groups_.size() - 1, groups_.back().devices, groups_.back().layers, 0, 0, 0);
  }
  double best() const { return best_; }           // infinity where there is none
  std::uint64_t tried() const { return tried_; }  // slicings that use up the devices

 private:
  void from(std::size_t group, int devices, int end, std::int64_t behind, double sum,
            double longest) {
    if (devices == 0) {
      if (group > 0) {
        from(group - 1, groups_[group - 1].devices, end, behind, sum, longest);
      } else if (end == 0) {
        ++tried_;
        best_ =
            std::min(best_, sum + static_cast<double>(groups_.front().micro_batches - 1) * longest);
      }
      return;
    }
    const SlicingProblem& p = groups_[group];
    const std::int64_t in_flight = std::min(behind + 1, p.micro_batches);
    for (int first = 0; first < end; ++first) {
      const auto c = p.range_class[p.at(first, end)];
      if (c < 0) continue;
      for (const StageOption& o : p.options[static_cast<std::size_t>(c)]) {
        if (o.devices > devices || o.most_in_flight < in_flight || !std::isfinite(o.seconds))
          continue;
        from(group, devices - o.devices, first, behind + 1, sum + o.seconds,
             std::max(longest, o.seconds));
      }
    }
  }

  std::vector<SlicingProblem> groups_;
  double best_ = infinity;
  std::uint64_t tried_ = 0;
};

// Alpa's objective of a slicing.
inline double objective_of(const std::vector<planner::SlicedStage>& stages,
                           std::int64_t micro_batches) {
  double sum = 0, longest = 0;
  for (std::size_t i = stages.size(); i-- > 0;) {
    sum += stages[i].option.seconds;
    longest = std::max(longest, stages[i].option.seconds);
  }
  return sum + static_cast<double>(micro_batches - 1) * longest;
}

// What a slicing claims, checked: layers first, stages in the order of the groups, each group used
// up, memory kept.
inline void check_consistent(const std::vector<SlicingProblem>& groups, const Slicing& found) {
  std::size_t group = 0;
  int layer = 0, left = groups.front().devices;
  const auto stages = static_cast<std::int64_t>(found.stages.size());
  for (std::int64_t s = 0; s < stages; ++s) {
    const auto& stage = found.stages[static_cast<std::size_t>(s)];
    if (left == 0) left = groups[++group].devices;
    const SlicingProblem& p = groups[group];
    CHECK(stage.first == layer);
    CHECK(stage.end > stage.first);
    CHECK(stage.option.devices <= left);
    CHECK(stage.option.most_in_flight >= std::min(stages - s, p.micro_batches));
    const auto& offered =
        p.options[static_cast<std::size_t>(p.range_class[p.at(stage.first, stage.end)])];
    CHECK(std::any_of(offered.begin(), offered.end(), [&](const StageOption& o) {
      return o.tag == stage.option.tag && o.seconds == stage.option.seconds;
    }));
    layer = stage.end;
    left -= stage.option.devices;
  }
  CHECK(group + 1 == groups.size());
  CHECK(left == 0);
  CHECK(layer == groups.front().layers);
  CHECK(found.objective ==
        doctest::Approx(objective_of(found.stages, groups.front().micro_batches)));
  CHECK(found.lower_bound == found.objective);
}

// Draws that are the same on every platform.
class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}
  int between(int low, int high) {
    return low + static_cast<int>(random_() % static_cast<unsigned>(high - low + 1));
  }
  bool one_in(int n) { return between(1, n) == 1; }
  template <class T, std::size_t n>
  T of(const std::array<T, n>& list) {
    return list[random_() % n];
  }

 private:
  std::mt19937 random_;
};

}  // namespace slicing
