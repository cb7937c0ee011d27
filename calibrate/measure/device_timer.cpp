#include "calibrate/measure/device_timer.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "calibrate/measure/settling.hpp"

namespace calibrate {

using namespace costmodel;
using runtime::Number;

namespace {

constexpr int most_queued = 16;
constexpr double between_waits = 5e-3;  // seconds of work queued at once, about

// "A resolution of around 0.5 microseconds" (CUDA Runtime API, cudaEventElapsedTime).
constexpr double resolution = 0.5e-6;

int runs_at_once(double seconds_each, double most) {
  const double wanted = std::ceil(between_waits / std::max(seconds_each, 1e-9));
  return static_cast<int>(std::clamp(wanted, 1.0, most));
}

// The rule, counted in batches.
StopRule of_batches(StopRule rule, int runs, Seconds left) {
  rule.warm_up = 0;
  rule.least = (rule.least + runs - 1) / runs;
  rule.most = std::max(2, rule.most / runs);
  rule.longest = left;
  return rule;
}

}  // namespace

// Adds the wall time of its life to what measuring has taken.
class DeviceTimer::Charged {
 public:
  explicit Charged(DeviceTimer& timer) : timer_(timer), begin_(timer.clock_()) {}
  ~Charged() { timer_.measuring_ += elapsed(); }
  Charged(const Charged&) = delete;
  Charged& operator=(const Charged&) = delete;
  Seconds elapsed() const { return timer_.clock_() - begin_; }

 private:
  DeviceTimer& timer_;
  const Seconds begin_;
};

DeviceTimer::DeviceTimer(runtime::Device& device, Clock clock, std::size_t flushed)
    : memory_(device.memory()), streams_(device.streams()), clock_(std::move(clock)) {
  constexpr std::size_t parts = 32;
  const std::size_t kept = std::max<std::size_t>(1, flushed / sizeof(float) / parts);
  read_ = {memory_.allocate(parts * kept * sizeof(float)), parts * kept, Number::f32};
  kept_ = {memory_.allocate(kept * sizeof(float)), kept, Number::f32};
  memory_.clear(read_.data, read_.bytes());
  memory_.clear(kept_.data, kept_.bytes());
  if (streams_ == nullptr) return;
  for (int i = 0; i < 2 * most_queued; ++i) events_.push_back(streams_->make_event());
}

DeviceTimer::~DeviceTimer() {
  memory_.release(read_.data);
  memory_.release(kept_.data);
}

// By reading: lines that had been written would have to go to memory during the run. All is read
// into one small place, all that is left to be written.
void DeviceTimer::flush() {
  for (std::size_t at = 0; at < read_.size; at += kept_.size)
    memory_.reduce(runtime::Reduction::max, read_.subspan(at, kept_.size), kept_);
}

double DeviceTimer::wall_time_of(const Work& work) {
  memory_.wait();
  const Seconds begin = clock_();
  work();
  memory_.wait();
  return (clock_() - begin).value;
}

double DeviceTimer::timed(const Work& work) {
  if (streams_ == nullptr) return wall_time_of(work);
  streams_->record(runtime::Streams::compute, events_[0]);
  work();
  streams_->record(runtime::Streams::compute, events_[1]);
  memory_.wait();
  return streams_->time(events_[0], events_[1]).value;
}

void DeviceTimer::batch(const Work& before, const Work& run, int runs, std::vector<double>& times) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(runs); ++i) {
    flush();
    before();
    if (streams_ == nullptr) {
      times.push_back(wall_time_of(run));
      continue;
    }
    streams_->record(runtime::Streams::compute, events_[2 * i]);
    run();
    streams_->record(runtime::Streams::compute, events_[2 * i + 1]);
  }
  if (streams_ == nullptr) return;
  memory_.wait();
  for (std::size_t i = 0; i < static_cast<std::size_t>(runs); ++i) {
    const Seconds time = streams_->time(events_[2 * i], events_[2 * i + 1]);
    times.push_back(std::max((time - pair_).value, resolution));
  }
}

Seconds DeviceTimer::event_pair() {
  if (pair_measured_ || streams_ == nullptr) return pair_;
  std::vector<double> times;
  const auto nothing = [] {};
  batch(nothing, nothing, most_queued, times);
  const Seconds median = summarised(times).median;
  if (median > Seconds(resolution)) pair_ = median;  // else it cannot be told from nothing
  pair_measured_ = true;
  return pair_;
}

Timing DeviceTimer::cold(const Work& before, const Work& run, const StopRule& rule) {
  constexpr std::size_t alike = 3, most = 10;
  constexpr double apart = 0.02;
  const Charged charged(*this);
  event_pair();
  std::vector<double> times;
  double each = 0;
  do {
    const Seconds begin = clock_();
    batch(before, run, 1, times);
    each = (clock_() - begin).value;
  } while (charged.elapsed() < rule.longest && times.size() < most &&
           !settled(times, alike, apart));
  times.clear();
  const int runs = runs_at_once(each, most_queued);
  const Seconds left = max(rule.longest - charged.elapsed(), Seconds(0));
  repeat([&] { batch(before, run, runs, times); }, of_batches(rule, runs, left), clock_,
         [&] { return summarised(times).relative_error; });
  return summarised(times);
}

Timing DeviceTimer::queued(const Work& run, const StopRule& rule) {
  constexpr double most = 256;
  const Charged charged(*this);
  timed(run);
  const int runs = runs_at_once(timed(run), most);
  std::vector<double> times;
  const auto many = [&] {
    for (int i = 0; i < runs; ++i) run();
  };
  StopRule warm = rule;
  warm.warm_up = 0;
  repeat([&] { times.push_back(timed(many) / runs); }, warm, clock_,
         [&] { return summarised(times).relative_error; });
  return summarised(times);
}

Seconds DeviceTimer::once(const Work& run) {
  const Charged charged(*this);
  return Seconds(timed(run));
}

}  // namespace calibrate
