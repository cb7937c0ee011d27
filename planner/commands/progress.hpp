// Duration and time limit of a search, and the progress line on a terminal.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <utility>

#include "costmodel/base/console.hpp"

namespace planner {

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Searches poll it, from any thread, to learn whether they must stop. On a terminal it prints the
// elapsed time once per second.
class Progress {
 public:
  // `most`: the time limit in seconds (0: none). `stopped`: what else ends a search, if anything.
  Progress(const Stopwatch& watch, double most, bool shown, std::function<bool()> stopped = {})
      : watch_(&watch), most_(most), shown_(shown), stopped_(std::move(stopped)) {}
  ~Progress() {
    if (told_ > 0) costmodel::clear_progress();
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Empty when there is neither a limit, nor a terminal, nor `stopped`.
  std::function<bool()> expired() {
    if (most_ <= 0 && !shown_) return stopped_;
    return [this] {
      if (stopped_ && stopped_()) return true;
      const double seconds = watch_->seconds();
      if (shown_) tell(static_cast<int>(seconds));
      return most_ > 0 && seconds > most_;
    };
  }

 private:
  void tell(int second) {
    int before = told_;
    if (second <= before || !told_.compare_exchange_strong(before, second)) return;
    const std::string limit = most_ > 0 ? fmt::format(" of at most {:g} s", most_) : "";
    costmodel::print_progress(fmt::format("searching: {} s{}", second, limit));
  }

  const Stopwatch* watch_;
  double most_;
  bool shown_;
  std::function<bool()> stopped_;
  std::atomic<int> told_{0};
};

}  // namespace planner
