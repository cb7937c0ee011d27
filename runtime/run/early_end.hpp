// What a run that ends before its time has seen: rank 0 says it once.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include "costmodel/base/units.hpp"
#include "runtime/run/run_command.hpp"
#include "runtime/training/run_progress.hpp"

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

  // Why the run ends, as soon as it is known, which may be before anybody tells it; the first
  // counts. Never waits for a report to be written.
  void note_cause(const std::string& cause);
  // What was noted, or is within `moment`; "": nothing.
  std::string noted_cause(costmodel::Seconds moment);
  // A signal ends the process: tells what was noted, which the signal then follows from, or else
  // the signal. A cause may come a little after the signal.
  void tell_signal(int number, costmodel::Seconds moment = {});

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
  std::mutex cause_mutex_;
  std::condition_variable cause_known_;
  std::string cause_;
};

}  // namespace runtime
