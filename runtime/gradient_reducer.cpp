#include "runtime/gradient_reducer.hpp"

#include <utility>

namespace runtime {

GradientReducer::GradientReducer(bool beside, std::function<costmodel::Seconds()> now)
    : beside_(beside), now_(std::move(now)) {
  if (beside_) thread_ = std::thread([this] { work(); });
}

GradientReducer::~GradientReducer() {
  if (!beside_) return;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    waiting_.clear();
  }
  changed_.notify_all();
  thread_.join();
}

void GradientReducer::reduce(LayerState& layer) {
  const costmodel::Seconds start = now_();
  layer.reduce();
  const TimeSpan span{start, now_()};
  const std::lock_guard lock(mutex_);
  spans_.push_back(span);
}

void GradientReducer::add(LayerState& layer) {
  if (!beside_) return reduce(layer);
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(&layer);
  }
  changed_.notify_all();
}

void GradientReducer::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ended_ || !waiting_.empty(); });
    if (ended_) return;
    LayerState* const layer = waiting_.front();
    waiting_.pop_front();
    busy_ = true;
    lock.unlock();
    std::exception_ptr fault;
    try {
      reduce(*layer);
    } catch (...) {
      fault = std::current_exception();
    }
    lock.lock();
    busy_ = false;
    if (fault && !fault_) fault_ = fault;
    if (fault) waiting_.clear();
    changed_.notify_all();
  }
}

std::vector<TimeSpan> GradientReducer::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return waiting_.empty() && !busy_; });
  if (fault_) std::rethrow_exception(std::exchange(fault_, nullptr));
  return std::exchange(spans_, {});
}

}  // namespace runtime
