// Reports, once and on rank 0, what a run measured before it ended early.
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

// Thread-safe.
class EarlyEnd {
 public:
  // Both outlive this. `begun`: the result before the first iteration.
  EarlyEnd(const RunRequest& request, const RunResult& begun) : request_(request), begun_(begun) {}

  // Adds an iteration that all ranks have completed; measurements by rank.
  void add(std::vector<RankMeasurement> iteration);
  // Adds a note for the report; call before the first iteration. "": no note.
  void note(std::string text);
  RunResult result() const;

  // Reports to RunRequest::ended_early.
  void tell(const std::string& cause);

  // Records the cause as soon as it is known, possibly before anything is reported; the first one
  // counts. Does not wait for a report being written.
  void note_cause(const std::string& cause);
  // The recorded cause, waiting up to `moment` for it; "": none.
  std::string noted_cause(costmodel::Seconds moment);
  // Reports when a signal ends the process: the recorded cause, which explains the signal, or else
  // the signal itself. Waits up to `moment` for a cause that arrives after the signal.
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
  bool warned_ = false;  // that the report so far cannot be written
  std::mutex cause_mutex_;
  std::condition_variable cause_known_;
  std::string cause_;
};

}  // namespace runtime
