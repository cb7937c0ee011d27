// Handles SIGINT and SIGTERM: the run ends at once, after a report.
#pragma once

#include <functional>
#include <thread>

namespace runtime {

// While it lives, the two signals (unless ignored) no longer end the process directly: a thread
// calls `say` with the signal's number and then ends the process with status 128 + number. Create
// it before any other thread, because threads inherit the mask of blocked signals.
class OnInterrupt {
 public:
  explicit OnInterrupt(std::function<void(int)> say);
  ~OnInterrupt();
  OnInterrupt(const OnInterrupt&) = delete;
  OnInterrupt& operator=(const OnInterrupt&) = delete;

 private:
  std::function<void(int)> say_;
  std::thread thread_;
};

}  // namespace runtime
