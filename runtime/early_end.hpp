// What a run that ends before its time has seen: rank 0 says it once.
#pragma once

#include <chrono>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/run_command.hpp"
#include "runtime/run_progress.hpp"

namespace runtime {

// Any thread may use it.
class EarlyEnd {
 public:
  // Both outlive this. `begun` is the result before the first iteration.
  EarlyEnd(const RunRequest& request, const RunResult& begun) : request_(request), begun_(begun) {}

  // One more iteration that all ranks have ended, by rank.
  void add(std::vector<RankMeasurement> iteration);
  // How the run goes, as it turned out; before its first iteration. "" is no note.
  void note(std::string text);
  RunResult result() const;

  // To RunRequest::ended_early.
  void tell(const std::string& cause);
  void tell_signal(int number);

 private:
  using Clock = std::chrono::steady_clock;

  RunResult partial(const std::string& cause) const;

  const RunRequest& request_;
  const RunResult& begun_;
  Clock::time_point next_;
  RunProgress progress_;
  std::vector<std::string> found_;
  std::mutex mutex_;
  bool told_ = false;
};

}  // namespace runtime
