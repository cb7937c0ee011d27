#include "runtime/training/run_progress.hpp"

#include <cstddef>
#include <utility>

namespace runtime {

namespace {

using namespace costmodel;

// The mean of `count` values and one more. The first iteration warms up and counts only while it is
// alone.
void mix(std::vector<Seconds>& means, const std::vector<Seconds>& more, std::size_t count) {
  for (std::size_t k = 0; k < means.size(); ++k)
    means[k] += (more[k] - means[k]) / static_cast<double>(count);
}

void add_to(RankMeasurement& all, RankMeasurement one) {
  const std::size_t count = all.iterations.size();
  mix(all.forward, one.forward, count);
  mix(all.backward, one.backward, count);
  one.pace = all.pace + (one.pace - all.pace) / static_cast<double>(count);
  one.forward = std::move(all.forward);
  one.backward = std::move(all.backward);
  all.iterations.insert(all.iterations.end(), one.iterations.begin(), one.iterations.end());
  all.loss_sums.insert(all.loss_sums.end(), one.loss_sums.begin(), one.loss_sums.end());
  one.iterations = std::move(all.iterations);
  one.loss_sums = std::move(all.loss_sums);
  all = std::move(one);
}

}  // namespace

void RunProgress::add(std::vector<RankMeasurement> iteration) {
  const std::scoped_lock lock(mutex_);
  if (ranks_.empty()) {
    ranks_ = std::move(iteration);
    return;
  }
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
    add_to(ranks_[rank], std::move(iteration[rank]));
}

std::vector<RankMeasurement> RunProgress::so_far() const {
  const std::scoped_lock lock(mutex_);
  return ranks_;
}

}  // namespace runtime
