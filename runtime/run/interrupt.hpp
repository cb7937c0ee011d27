// SIGINT and SIGTERM end a run at once, but not without a word.
#pragma once

#include <functional>
#include <thread>

namespace runtime {

// While it lives, the two signals (where they are not ignored) no longer end the process: a thread
// of its own calls `say` with the signal's number, then ends the process with 128 + that number.
// Make it before any other thread is: threads inherit which signals are blocked.
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
