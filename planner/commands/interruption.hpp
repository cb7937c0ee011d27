// A long command that SIGINT or SIGTERM ends early reports what it has. A second signal ends the
// process at once.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "costmodel/base/interrupt.hpp"
#include "planner/commands/session.hpp"

namespace planner {

// Watches for the signals while it lives.
class Interruption {
 public:
  bool came() const { return number_ != 0; }
  // came(), for searches to poll from any thread.
  std::function<bool()> poll() const {
    return [this] { return came(); };
  }
  // "interrupted by SIGINT"; "" before a signal.
  std::string text() const { return came() ? costmodel::interrupted_text(number_) : ""; }

  // Adds to the result of a command that a signal ended early: the status, and on standard error
  // what the result holds.
  void tell(const std::string& what, CommandResult& result) const {
    result.status = costmodel::interrupted_status(number_);
    result.warnings.push_back("shardplan " + what);
  }

 private:
  std::atomic<int> number_{0};
  costmodel::OnInterrupt on_interrupt_{[this](int number) {
    return number_.exchange(number) == 0 ? costmodel::AfterSignal::go_on
                                         : costmodel::AfterSignal::end;
  }};
};

}  // namespace planner
