// Reduces gradients over the ranks that hold the same weights, layer by layer. Optionally on a
// second thread as soon as a layer's gradients are complete, concurrent with the backward of
// earlier layers (bucketed overlap, Li et al. 2020, arXiv:2006.15704, section 3.2.3; a bucket is a
// layer). When the communicator's collectives are asynchronous (on a stream), no thread is needed.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "costmodel/base/units.hpp"
#include "runtime/backend/transport.hpp"
#include "runtime/training/layer_state.hpp"

namespace runtime {

struct TimeSpan {
  costmodel::Seconds start, end;
};

class GradientReducer {
 public:
  enum class How { alone, on_a_thread, in_a_stream };
  // `now` is called on the reducing thread. in_a_stream needs the replicas' `at_once`; on_a_thread
  // needs `messages`, the transport of the thread's reductions.
  GradientReducer(How how, std::function<costmodel::Seconds()> now,
                  GroupOperations* at_once = nullptr, Transport* messages = nullptr);
  // Stops the thread; pending reductions are dropped.
  ~GradientReducer();
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  bool beside() const { return how_ != How::alone; }
  // Call when the layer's gradients are complete. The order of layers is the same on all ranks of a
  // group.
  void add(LayerState& layer);
  // Waits until all are reduced; returns each reduction's start and end since the last finish().
  // Throws what a reduction threw. Spans on a stream count from `since`.
  std::vector<TimeSpan> finish(Streams::Event since = 0);

 private:
  void reduce(LayerState& layer);
  void work();

  How how_;
  GroupOperations* at_once_;
  Transport* messages_;
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
