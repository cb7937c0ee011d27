// Sums gradients over the ranks that hold the same, layer by layer: where asked for, on a thread of
// its own as soon as a layer's are complete, beside the backward of the layers before it (bucketed
// overlap, Li et al. 2020, arXiv:2006.15704, section 3.2.3; a bucket is a layer). Where a
// communicator's collectives go beside the computation by themselves, no thread is needed.
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
  // `now` is called by whoever reduces. `at_once`, of the replicas, is there for in_a_stream;
  // `messages`, which the thread's reductions go by, for on_a_thread.
  GradientReducer(How how, std::function<costmodel::Seconds()> now,
                  GroupOperations* at_once = nullptr, Transport* messages = nullptr);
  // Ends what is not done.
  ~GradientReducer();
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  bool beside() const { return how_ != How::alone; }
  // The layer's gradients are complete. Layers come in the same order on all ranks of a group.
  void add(LayerState& layer);
  // Returns when all are reduced: when each was, since the last finish(). Throws what a reduction
  // threw. Spans in a stream count from `since`.
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
