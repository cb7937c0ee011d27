// Signals that tests send to their own process, or to a copy of it.
#include "costmodel/base/interrupt.hpp"

#include <doctest/doctest.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

namespace interrupt_test {

using costmodel::AfterSignal;
using costmodel::OnInterrupt;

namespace {

template <class Condition>
bool soon(const Condition& condition) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!condition() && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return condition();
}

constexpr int lived = 7;

// How a child ends that does this: its exit status, or minus the signal's number.
int end_of(const std::function<void()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    for (const int number : {SIGINT, SIGTERM}) signal(number, SIG_DFL);  // not the test program's
    work();
    _exit(lived);
  }
  int state = 0;
  waitpid(child, &state, 0);
  return WIFEXITED(state) ? WEXITSTATUS(state) : -WTERMSIG(state);
}

}  // namespace

TEST_CASE("a signal is told, and the process goes on where that is the answer") {
  std::atomic<int> told{0};
  {
    const OnInterrupt watching([&](int number) {
      told = told * 100 + number;
      return AfterSignal::go_on;
    });
    kill(getpid(), SIGINT);
    CHECK(soon([&] { return told == SIGINT; }));
    kill(getpid(), SIGTERM);
    CHECK(soon([&] { return told == SIGINT * 100 + SIGTERM; }));
  }
  const int after = end_of([] { kill(getpid(), SIGTERM); });
  CHECK(after == -SIGTERM);
}

TEST_CASE("or ends with the status that shells give a signal") {
  for (const int number : {SIGINT, SIGTERM}) {
    const int status = end_of([number] {
      const OnInterrupt watching([](int) { return AfterSignal::end; });
      kill(getpid(), number);
      soon([] { return false; });
    });
    CHECK(status == 128 + number);
    CHECK(costmodel::interrupted_status(number) == status);
  }
}

TEST_CASE("a signal that the caller ignores stays ignored") {
  const int status = end_of([] {
    signal(SIGINT, SIG_IGN);
    std::atomic<bool> told{false};
    const OnInterrupt watching([&](int number) {
      told = true;
      return number == SIGINT ? AfterSignal::end : AfterSignal::go_on;
    });
    kill(getpid(), SIGINT);
    kill(getpid(), SIGTERM);
    soon([&] { return told.load(); });
  });
  CHECK(status == lived);
}

TEST_CASE("signals have their names") {
  CHECK(costmodel::interrupted_text(SIGINT) == "interrupted by SIGINT");
  CHECK(costmodel::interrupted_text(SIGTERM) == "interrupted by SIGTERM");
}

}  // namespace interrupt_test
