// Alpa's dynamic program exactly as in its paper (arXiv:2201.12023, section 5.2, equation 3), not
// optimised: the baseline for stage slicing. For every candidate of the longest stage time it
// computes F(stages, first layer, devices) over all cuts and submeshes.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "planner/solvers/stage_slicing.hpp"

class AlpaRecurrence {
 public:
  explicit AlpaRecurrence(const planner::SlicingProblem& problem) : p_(problem) {
    for (const auto& list : p_.options) {
      for (const auto& o : list) {
        if (!std::isfinite(o.seconds)) continue;
        candidates_.push_back(o.seconds);
        sizes_.push_back(o.devices);
      }
    }
    for (auto* list : {&sizes_}) {
      std::sort(list->begin(), list->end());
      list->erase(std::unique(list->begin(), list->end()), list->end());
    }
    std::sort(candidates_.begin(), candidates_.end());
    candidates_.erase(std::unique(candidates_.begin(), candidates_.end()), candidates_.end());
    make_table();
  }

  const std::vector<double>& candidates() const { return candidates_; }

  // The least objective; infinite when there is no slicing.
  double best() const {
    double best = infinity;
    for (const double longest : candidates_) {
      if (rest() * longest >= best) break;
      best = std::min(best, pass(longest) + rest() * longest);
    }
    return best;
  }

  // The least sum of times of stages no longer than `longest`.
  double pass(double longest) const {
    const auto layers = static_cast<std::size_t>(p_.layers);
    const auto devices = static_cast<std::size_t>(p_.devices);
    const std::size_t row = devices + 1, plane = (layers + 1) * row;
    std::vector<double> fewer(plane, infinity), sums(plane);
    fewer[layers * row] = 0;
    double best = infinity;
    for (std::size_t stages = 1; stages <= layers; ++stages) {
      std::fill(sums.begin(), sums.end(), infinity);
      for (std::size_t first = 0; first < layers; ++first) {
        for (std::size_t used = 1; used <= devices; ++used) {
          double least = infinity;
          for (std::size_t end = first + 1; end <= layers; ++end) {
            for (std::size_t s = 0; s < sizes_.size(); ++s) {
              const auto size = static_cast<std::size_t>(sizes_[s]);
              if (size > used) break;
              const double time = time_of(first, end, s, stages);
              if (time <= longest) least = std::min(least, time + fewer[end * row + used - size]);
            }
          }
          sums[first * row + used] = least;
        }
      }
      best = std::min(best, sums[devices]);
      std::swap(fewer, sums);
    }
    return best;
  }

 private:
  static constexpr double infinity = std::numeric_limits<double>::infinity();

  double rest() const { return static_cast<double>(p_.micro_batches - 1); }

  // Time of a range on a submesh by what must be in flight: [class][submesh][in flight].
  void make_table() {
    const auto most = static_cast<std::size_t>(std::min<std::int64_t>(p_.layers, p_.micro_batches));
    in_flight_ = most + 1;
    table_.assign(p_.options.size() * sizes_.size() * in_flight_, infinity);
    for (std::size_t c = 0; c < p_.options.size(); ++c) {
      for (const auto& o : p_.options[c]) {
        if (!std::isfinite(o.seconds)) continue;
        const auto size = static_cast<std::size_t>(
            std::lower_bound(sizes_.begin(), sizes_.end(), o.devices) - sizes_.begin());
        for (std::size_t k = 1; k <= most && static_cast<int>(k) <= o.most_in_flight; ++k) {
          double& time = table_[(c * sizes_.size() + size) * in_flight_ + k];
          time = std::min(time, o.seconds);
        }
      }
    }
  }

  double time_of(std::size_t first, std::size_t end, std::size_t size, std::size_t stages) const {
    const auto c = p_.range_class[p_.at(static_cast<int>(first), static_cast<int>(end))];
    if (c < 0) return infinity;
    return table_[(static_cast<std::size_t>(c) * sizes_.size() + size) * in_flight_ +
                  std::min(stages, in_flight_ - 1)];
  }

  const planner::SlicingProblem& p_;
  std::vector<double> candidates_;
  std::vector<int> sizes_;
  std::size_t in_flight_ = 0;
  std::vector<double> table_;
};
