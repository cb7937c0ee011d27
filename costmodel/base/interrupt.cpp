#include "costmodel/base/interrupt.hpp"

#include <pthread.h>
#include <signal.h>

#include <cstdlib>
#include <utility>

namespace costmodel {

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

int next_of(const sigset_t& signals) {
  int number = 0;
  while (sigwait(&signals, &number) != 0) {
  }
  return number;
}

void watch(const sigset_t& signals, const std::function<AfterSignal(int)>& say) {
  for (int number; (number = next_of(signals)) != over;)
    if (say(number) == AfterSignal::end) std::_Exit(interrupted_status(number));
}

}  // namespace

OnInterrupt::OnInterrupt(std::function<AfterSignal(int)> say) : say_(std::move(say)) {
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

std::string interrupted_text(int number) {
  return std::string("interrupted by ") + (number == SIGINT ? "SIGINT" : "SIGTERM");
}

int interrupted_status(int number) { return 128 + number; }

}  // namespace costmodel
