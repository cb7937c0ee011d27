// Sums gradients over the ranks that hold the same, layer by layer: where asked for, on a thread of
// its own as soon as a layer's are complete, beside the backward of the layers before it (bucketed
// overlap, Li et al. 2020, arXiv:2006.15704, section 3.2.3; a bucket is a layer).
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "costmodel/units.hpp"
#include "runtime/layer_state.hpp"

namespace runtime {

struct TimeSpan {
  costmodel::Seconds start, end;
};

class GradientReducer {
 public:
  // `beside`: on a thread of its own. `now` is called by whoever reduces.
  GradientReducer(bool beside, std::function<costmodel::Seconds()> now);
  ~GradientReducer();
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  bool beside() const { return beside_; }
  // The layer's gradients are complete. Layers come in the same order on all ranks of a group.
  void add(LayerState& layer);
  // Returns when all are reduced: when each was, since the last finish(). Throws what a reduction
  // threw.
  std::vector<TimeSpan> finish();

 private:
  void reduce(LayerState& layer);
  void work();

  bool beside_;
  std::function<costmodel::Seconds()> now_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<LayerState*> waiting_;
  bool busy_ = false, ended_ = false;
  std::exception_ptr fault_;
  std::vector<TimeSpan> spans_;
  std::thread thread_;
};

}  // namespace runtime
