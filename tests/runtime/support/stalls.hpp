// Detects whether the machine itself stalled during a timing: a thread sleeps a millisecond at a
// time and measures how late it wakes.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace stalls {

class Watch {
 public:
  Watch() : thread_([this] { watch(); }) {}
  ~Watch() { end(); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // Of the time since the beginning, the share by which sleeps were longer than the median one.
  double share() {
    end();
    if (sleeps_.empty()) return 1;
    auto sorted = sleeps_;
    std::sort(sorted.begin(), sorted.end());
    const double usual = sorted[sorted.size() / 2];
    double all = 0, late = 0;
    for (const double sleep : sleeps_) {
      all += sleep;
      late += std::max(0.0, sleep - usual);
    }
    return late / all;
  }

 private:
  void end() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  void watch() {
    using Clock = std::chrono::steady_clock;
    while (!stop_) {
      const auto begin = Clock::now();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      sleeps_.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
    }
  }

  std::atomic<bool> stop_ = false;
  std::vector<double> sleeps_;
  std::thread thread_;
};

}  // namespace stalls
