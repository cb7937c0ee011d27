#include "runtime/training/gradient_reducer.hpp"

#include <utility>

#include "costmodel/base/error.hpp"

namespace runtime {

GradientReducer::GradientReducer(How how, std::function<costmodel::Seconds()> now,
                                 GroupOperations* at_once, Transport* messages)
    : how_(how), at_once_(at_once), messages_(messages), now_(std::move(now)) {
  SHARDPLAN_CHECK(how != How::in_a_stream || at_once != nullptr);
  SHARDPLAN_CHECK(how != How::on_a_thread || messages != nullptr);
  if (how_ == How::on_a_thread) thread_ = std::thread([this] { work(); });
}

GradientReducer::~GradientReducer() {
  if (how_ != How::on_a_thread) return;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    waiting_.clear();
    if (busy_) messages_->stop();
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
  if (how_ == How::alone) return reduce(layer);
  if (how_ == How::in_a_stream) {
    at_once_->beside(true);
    layer.reduce();
    return at_once_->beside(false);
  }
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

std::vector<TimeSpan> GradientReducer::finish(Streams::Event since) {
  if (how_ == How::in_a_stream) {
    at_once_->join();
    std::vector<TimeSpan> spans;
    for (const auto& [start, end] : at_once_->spans(since)) spans.push_back({start, end});
    return spans;
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return waiting_.empty() && !busy_; });
  if (fault_) std::rethrow_exception(std::exchange(fault_, nullptr));
  return std::exchange(spans_, {});
}

}  // namespace runtime
