// The threads of a thread block, on the host. They synchronise every few operations, which costs
// operating system threads hundreds of times as much as the operations; so here they are fibers of
// one thread. Builds with the thread sanitizer use real threads, so that it finds a missing
// synchronisation.
#pragma once

#if defined(__SANITIZE_THREAD__)
#include <barrier>
#include <thread>
#include <vector>
#else
#include <boost/context/fiber.hpp>
#include <boost/context/fixedsize_stack.hpp>
#include <memory>
#include <utility>
#include <vector>
#endif

namespace host_lanes {

#if defined(__SANITIZE_THREAD__)

struct Turn {};

class Meeting {
 public:
  explicit Meeting(int size) : barrier_(size) {}
  void wait(Turn&) { barrier_.arrive_and_wait(); }

 private:
  std::barrier<> barrier_;
};

// body(turn, i) for each i below count, side by side.
template <class Body>
void run(int count, const Body& body) {
  std::vector<std::jthread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&body, i] {
      Turn turn;
      body(turn, i);
    });
  }
}

#else

// Gives the turn to the others.
class Turn {
 public:
  explicit Turn(boost::context::fiber others) : others_(std::move(others)) {}
  void pass() { others_ = std::move(others_).resume(); }
  boost::context::fiber end() { return std::move(others_); }

 private:
  boost::context::fiber others_;
};

class Meeting {
 public:
  explicit Meeting(int size) : size_(size) {}
  void wait(Turn& turn) {
    const long meeting = met_;
    if (++here_ == size_) {
      here_ = 0;
      ++met_;
    }
    while (met_ == meeting) turn.pass();
  }

 private:
  int size_, here_ = 0;
  long met_ = 0;
};

// body(turn, i) for each i below count, each until it waits for the others. It throws nothing.
template <class Body>
void run(int count, const Body& body) {
  constexpr std::size_t stack = std::size_t{256} << 10U;
  std::vector<boost::context::fiber> fibers;
  for (int i = 0; i < count; ++i) {
    fibers.emplace_back(std::allocator_arg, boost::context::fixedsize_stack(stack),
                        [&body, i](boost::context::fiber&& others) {
                          Turn turn(std::move(others));
                          body(turn, i);
                          return turn.end();
                        });
  }
  for (bool waits = true; waits;) {
    waits = false;
    for (auto& fiber : fibers) {
      if (!fiber) continue;
      fiber = std::move(fiber).resume();
      waits = true;
    }
  }
}

#endif

}  // namespace host_lanes
