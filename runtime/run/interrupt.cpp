#include "runtime/run/interrupt.hpp"

#include <pthread.h>
#include <signal.h>

#include <cstdlib>
#include <utility>

namespace runtime {

namespace {

// SIGUSR2 wakes the thread when the run is over.
constexpr int over = SIGUSR2;

sigset_t watched() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, over);
  for (const int number : {SIGINT, SIGTERM}) {
    struct sigaction action {};
    sigaction(number, nullptr, &action);
    if (action.sa_handler != SIG_IGN) sigaddset(&set, number);
  }
  return set;
}

void watch(const sigset_t& signals, const std::function<void(int)>& say) {
  int number = 0;
  while (sigwait(&signals, &number) != 0) {
  }
  if (number == over) return;
  say(number);
  std::_Exit(128 + number);
}

}  // namespace

OnInterrupt::OnInterrupt(std::function<void(int)> say) : say_(std::move(say)) {
  const sigset_t signals = watched();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  thread_ = std::thread([this, signals] { watch(signals, say_); });
}

OnInterrupt::~OnInterrupt() {
  pthread_kill(thread_.native_handle(), over);
  thread_.join();
  const sigset_t signals = watched();
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

}  // namespace runtime
