// Messages between ranks that are threads, and how a run ends when a rank cannot go on.
#include "runtime/ranks/thread_transport.hpp"

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <latch>
#include <mutex>
#include <new>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "runtime/backend/tags.hpp"

namespace thread_transport_test {

using costmodel::Seconds;
using runtime::run_ranks;
using runtime::RunFault;
using runtime::ThreadOptions;
using runtime::Transport;

namespace {

void put(Transport& transport, int to, int tag, int value) {
  transport.send(to, tag, std::as_bytes(std::span(&value, 1)));
}

int get(Transport& transport, int from, int tag) {
  int value = 0;
  transport.recv(from, tag, std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

struct Ending {
  int rank = -1;
  std::string what;
  double seconds = 0;
};

Ending end_of(int ranks, Seconds patience, const std::function<void(Transport&)>& program) {
  const auto start = std::chrono::steady_clock::now();
  Ending ending;
  try {
    run_ranks(ranks, {patience}, program);
  } catch (const RunFault& fault) {
    ending = {fault.rank(), fault.what()};
  }
  ending.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return ending;
}

// A rank that works on while others wait for it, until they gave up.
class Stuck {
 public:
  void wait() {
    std::unique_lock lock(mutex_);
    REQUIRE(bell_.wait_for(lock, std::chrono::seconds(30), [&] { return free_; }));
  }
  void let_go() {
    const std::scoped_lock lock(mutex_);
    free_ = true;
    bell_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable bell_;
  bool free_ = false;
};

}  // namespace

TEST_CASE("a token goes round 32 ranks a hundred times") {
  int last = 0;
  run_ranks(32, {}, [&](Transport& t) {
    const int n = t.size(), next = (t.rank() + 1) % n, before = (t.rank() + n - 1) % n;
    for (int lap = 0; lap < 100; ++lap) {
      if (t.rank() == 0) put(t, next, 1, lap * n);
      const int token = get(t, before, 1);
      if (t.rank() == 0) {
        CHECK(token == lap * n + n - 1);
        last = token;
      } else {
        put(t, next, 1, token + 1);
      }
    }
  });
  CHECK(last == 99 * 32 + 31);
}

TEST_CASE(
    "messages of one tag arrive in order, tags and senders do not mix, ranks may write to "
    "themselves") {
  run_ranks(3, {}, [](Transport& t) {
    constexpr int count = 200;
    for (int i = 0; i < count; ++i)
      for (int to = 0; to < 3; ++to)
        for (int tag = 0; tag < 4; ++tag) put(t, to, tag, 1000 * i + 10 * t.rank() + tag);
    int wrong = 0;
    for (int tag = 3; tag >= 0; --tag)
      for (int from = 2; from >= 0; --from)
        for (int i = 0; i < count; ++i)
          wrong += get(t, from, tag) != 1000 * i + 10 * from + tag ? 1 : 0;
    CHECK(wrong == 0);
  });
}

TEST_CASE("a sent message may be overwritten at once; empty ones travel too") {
  run_ranks(2, {}, [](Transport& t) {
    if (t.rank() == 0) {
      std::vector<std::byte> message(100'000, std::byte{7});
      t.send(1, 5, message);
      message.assign(message.size(), std::byte{9});
      t.send(1, 6, {});
    } else {
      t.recv(0, 6, {});
      std::vector<std::byte> message(100'000);
      t.recv(0, 5, message);
      CHECK(message == std::vector<std::byte>(100'000, std::byte{7}));
    }
  });
}

TEST_CASE("a rank that throws ends the run for those that wait and those that come later") {
  std::atomic<int> told = 0;
  const Ending ending = end_of(4, Seconds(30), [&](Transport& t) {
    if (t.rank() == 2) throw std::runtime_error("the disk is full");
    try {
      if (t.rank() == 3) {  // arrives when it is over
        while (true) put(t, 3, 1, 0), get(t, 3, 1);
      }
      get(t, 2, 1);
    } catch (const RunFault& fault) {
      CHECK(fault.rank() == 2);
      CHECK(fault.what() == std::string("the run was given up: rank 2: the disk is full"));
      ++told;
      throw;
    }
  });
  CHECK(told == 3);
  CHECK(ending.rank == 2);
  CHECK(ending.what == "rank 2: the disk is full");
  CHECK(ending.seconds < 30);  // the patience
}

TEST_CASE("whatever is thrown names its rank") {
  const auto thrown = [](auto fault) {
    return end_of(2, Seconds(30), [&](Transport& t) {
      if (t.rank() == 1) throw fault;
      get(t, 1, 1);
    });
  };
  CHECK(thrown(std::bad_alloc()).what == "rank 1: memory ran out");
  CHECK(thrown(std::bad_alloc()).rank == 1);
  CHECK(thrown(42).what == "rank 1: failed without saying why");
  CHECK(thrown(RunFault(1, "rank 1: as it is")).what == "rank 1: as it is");
}

TEST_CASE("patience: who waited for what from whom, and who kept them all waiting") {
  Stuck stuck;
  std::latch ready(3);
  const Ending ending = end_of(3, Seconds(0.2), [&](Transport& t) {
    ready.arrive_and_wait();
    if (t.rank() == 2) return stuck.wait();
    try {
      t.rank() == 0 ? get(t, 1, runtime::forward_tag(3, 5)) : get(t, 2, runtime::collective_tag(9));
    } catch (const RunFault&) {
      stuck.let_go();
      throw;
    }
  });
  CHECK(ending.rank == 2);
  const bool first = ending.what ==
                     "rank 0 waited 0.2 s for the forward result of stage 3, micro-batch 5 from "
                     "rank 1; rank 1 waits for a message of collective 9 from rank 2; rank 2 waits "
                     "for nobody";
  const bool second =
      ending.what ==
      "rank 1 waited 0.2 s for a message of collective 9 from rank 2; rank 2 waits for nobody";
  CHECK_MESSAGE((first || second), ending.what);
  CHECK(ending.seconds >= 0.2);
}

TEST_CASE("ranks that wait for one another are told so") {
  std::latch ready(2);
  const Ending ending = end_of(2, Seconds(0.2), [&](Transport& t) {
    ready.arrive_and_wait();
    get(t, 1 - t.rank(), runtime::backward_tag(t.rank(), 0));
  });
  CHECK_MESSAGE(ending.what.ends_with("; they wait for one another"), ending.what);
  CHECK(ending.what.find("waited 0.2 s for the backward result of stage") != std::string::npos);
}

TEST_CASE("a rank that ended without sending is found at once, not after the patience") {
  const Ending ending = end_of(2, Seconds(30), [](Transport& t) {
    if (t.rank() == 0) get(t, 1, runtime::control_tag(4));
  });
  CHECK(ending.what == "rank 1 ended without sending control message 4 to rank 0");
  CHECK(ending.rank == 1);
  CHECK(ending.seconds < 30);
  run_ranks(2, {Seconds(30)}, [](Transport& t) {  // what it sent before is still there
    if (t.rank() == 1) return put(t, 0, 1, 8);
    CHECK(get(t, 1, 1) == 8);
  });
}

TEST_CASE("another thread of a rank has a transport of its own, whose waits can be stopped") {
  run_ranks(2, {Seconds(30)}, [](Transport& t) {
    Transport* const beside = t.beside();
    REQUIRE(beside != nullptr);
    CHECK(beside == t.beside());
    put(*beside, 1 - t.rank(), 3, t.rank());
    CHECK(get(*beside, 1 - t.rank(), 3) == 1 - t.rank());
    bool stopped = false;
    std::thread other([&] {
      try {
        get(*beside, 1 - t.rank(), 4);
      } catch (const RunFault&) {
        stopped = true;
      }
    });
    beside->stop();
    other.join();
    CHECK(stopped);
    put(t, 1 - t.rank(), 5, t.rank());  // the rank itself goes on
    CHECK(get(t, 1 - t.rank(), 5) == 1 - t.rank());
  });
}

TEST_CASE("a message of another size") {
  const Ending ending = end_of(2, Seconds(30), [](Transport& t) {
    std::array<std::byte, 12> message{};
    if (t.rank() == 1) return t.send(0, runtime::forward_tag(0, 2), message);
    t.recv(1, runtime::forward_tag(0, 2), std::span(message).first(8));
  });
  CHECK(ending.rank == 1);
  CHECK(ending.what ==
        "rank 1 sent 12 bytes to rank 0, which wants 8: the forward result of stage 0, "
        "micro-batch 2");
}

TEST_CASE("worlds of another size, and ranks outside") {
  CHECK(end_of(0, Seconds(1), [](Transport&) {}).what == "a world of 0 ranks cannot be");
  CHECK(end_of(3, Seconds(1), [](Transport& t) { require_size(t, 4, "the plan"); }).what ==
        "the plan wants 4 ranks, 3 were started");
  CHECK(end_of(1, Seconds(1), [](Transport& t) { put(t, 1, 0, 0); }).what ==
        "rank 0 sends to rank 1, but the world has 1 ranks");
  CHECK(end_of(1, Seconds(1), [](Transport& t) { get(t, -1, 0); }).what ==
        "rank 0 waits for rank -1, but the world has 1 ranks");
}

}  // namespace thread_transport_test
