// Handles SIGINT and SIGTERM: a command that takes long reports what it has before it ends.
#pragma once

#include <functional>
#include <string>
#include <thread>

namespace costmodel {

enum class AfterSignal { end, go_on };

// While it lives, the two signals (unless ignored) no longer end the process directly: a thread
// calls `say` with the signal's number, and unless that returns go_on ends the process with
// interrupted_status(). Create it before any other thread, because threads inherit the mask of
// blocked signals.
class OnInterrupt {
 public:
  explicit OnInterrupt(std::function<AfterSignal(int)> say);
  ~OnInterrupt();
  OnInterrupt(const OnInterrupt&) = delete;
  OnInterrupt& operator=(const OnInterrupt&) = delete;

 private:
  std::function<AfterSignal(int)> say_;
  std::thread thread_;
};

// For what waits for a pipe's other end: it looks again and again whether a signal has come since
// the wait began, at most `wait_ms` after the last time.
class InterruptedWait {
 public:
  InterruptedWait();
  // Throws ConfigError then: "FILE: reading was interrupted by SIGTERM".
  void refuse(const std::string& file, const char* doing) const;
  static constexpr int wait_ms = 100;

 private:
  int before_;
};

// "interrupted by SIGINT".
std::string interrupted_text(int number);

// 128 + number, the status that a shell reports for a process ended by a signal.
int interrupted_status(int number);

}  // namespace costmodel
