// A long command that SIGINT or SIGTERM ends early reports what it has. A second signal ends the
// process at once.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>

#include "costmodel/base/interrupt.hpp"
#include "planner/commands/session.hpp"

namespace planner {

// Watches for the signals while it lives; in a program that runs commands as functions, for what
// that asks.
class Interruption {
 public:
  explicit Interruption(const Options& options) : caller_(options.caller) {
    if (caller_ == nullptr) on_interrupt_.emplace([this](int number) { return receive(number); });
  }

  bool came() const { return number() != 0; }
  // came(), for searches to poll from any thread.
  std::function<bool()> poll() const {
    return [this] { return came(); };
  }
  // "interrupted by SIGINT"; "" before a signal.
  std::string text() const { return came() ? costmodel::interrupted_text(number()) : ""; }

  // Adds to the result of a command that a signal ended early: the status, and on standard error
  // what the result holds.
  void tell(const std::string& what, CommandResult& result) const {
    result.status = costmodel::interrupted_status(number());
    result.warnings.push_back("shardplan " + what);
  }

 private:
  int number() const { return caller_ != nullptr ? caller_->signal.load() : number_.load(); }
  costmodel::AfterSignal receive(int number) {
    return number_.exchange(number) == 0 ? costmodel::AfterSignal::go_on
                                         : costmodel::AfterSignal::end;
  }

  const Caller* caller_;
  std::atomic<int> number_{0};
  std::optional<costmodel::OnInterrupt> on_interrupt_;
};

}  // namespace planner
