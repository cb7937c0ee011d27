#include "costmodel/base/interrupt.hpp"

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "costmodel/base/error.hpp"

namespace costmodel {

namespace {

// SIGUSR2 wakes the thread when the run is over.
constexpr int over = SIGUSR2;

std::atomic<int> last_signal{0}, signals_come{0};

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
  for (int number; (number = next_of(signals)) != over;) {
    last_signal = number;
    ++signals_come;
    if (say(number) == AfterSignal::end) std::_Exit(interrupted_status(number));
  }
}

}  // namespace

OnInterrupt::OnInterrupt(std::function<AfterSignal(int)> say) : say_(std::move(say)) {
  const sigset_t signals = watched();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  try {
    thread_ = std::thread([this, signals] { watch(signals, say_); });
  } catch (const std::system_error&) {  // there are no more: signals go on ending the process
    pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  } catch (...) {
    pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
    throw;
  }
}

OnInterrupt::~OnInterrupt() {
  if (!thread_.joinable()) return;
  pthread_kill(thread_.native_handle(), over);
  thread_.join();
  const sigset_t signals = watched();
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

InterruptedWait::InterruptedWait() : before_(signals_come) {}

void InterruptedWait::refuse(const std::string& file, const char* doing) const {
  if (signals_come == before_) return;
  throw ConfigError({file, 0, 0}, std::string(doing) + " was " + interrupted_text(last_signal),
                    "start again when the other end is there");
}

std::string interrupted_text(int number) {
  return std::string("interrupted by ") + (number == SIGINT ? "SIGINT" : "SIGTERM");
}

int interrupted_status(int number) { return 128 + number; }

}  // namespace costmodel
