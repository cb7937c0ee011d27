// Messages between ranks over TCP, and how a run ends when one of them cannot go on.
#include "runtime/ranks/tcp_world.hpp"

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <future>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "runtime/backend/tags.hpp"
#include "tests/runtime/support/tcp_ranks.hpp"

namespace tcp_world_test {

using costmodel::Seconds;
using runtime::Meeting;
using runtime::RunFault;
using runtime::TcpWorld;
using namespace tcp_test;

namespace {

const bool not_stopped = false;

void put(TcpWorld& world, int to, int tag, int value) {
  world.send(to, tag, std::as_bytes(std::span(&value, 1)));
}

int get(TcpWorld& world, int from, int tag) {
  const TcpWorld::Bytes bytes = world.recv(from, tag, 0, not_stopped);
  int value = 0;
  REQUIRE(bytes.size() == sizeof value);
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

}  // namespace

TEST_CASE("a token goes round 1 to 9 ranks") {
  for (const int n : {1, 2, 3, 9}) {
    const auto ends = ends_of(ranks_of(n), Seconds(30), [&](TcpWorld& w) {
      const int next = (w.rank() + 1) % n, before = (w.rank() + n - 1) % n;
      for (int lap = 0; lap < 20; ++lap) {
        if (w.rank() == 0) put(w, next, 1, lap * n);
        const int token = get(w, before, 1);
        if (w.rank() == 0) CHECK(token == lap * n + n - 1);
        if (w.rank() != 0) put(w, next, 1, token + 1);
      }
    });
    CHECK(ends == well(n));
  }
}

TEST_CASE("messages arrive in order, whole and apart, long ones both ways at the same time") {
  const auto ends = ends_of(ranks_of(3), Seconds(30), [](TcpWorld& w) {
    constexpr int count = 50;
    const std::vector<std::byte> much(3'000'000, static_cast<std::byte>(w.rank()));
    for (int to = 0; to < 3; ++to) {
      w.send(to, 7, much);
      w.send(to, 8, {});
      for (int i = 0; i < count; ++i)
        for (int tag = 0; tag < 4; ++tag) put(w, to, tag, 1000 * i + 10 * w.rank() + tag);
    }
    int wrong = 0;
    for (int tag = 3; tag >= 0; --tag)
      for (int from = 2; from >= 0; --from)
        for (int i = 0; i < count; ++i)
          wrong += get(w, from, tag) != 1000 * i + 10 * from + tag ? 1 : 0;
    CHECK(wrong == 0);
    for (int from = 0; from < 3; ++from) {
      CHECK(w.recv(from, 8, 0, not_stopped).empty());
      CHECK(w.recv(from, 7, 0, not_stopped) ==
            std::vector<std::byte>(much.size(), static_cast<std::byte>(from)));
    }
  });
  CHECK(ends == well(3));
}

TEST_CASE("what one rank finds ends the run for all, with its cause") {
  const auto start = std::chrono::steady_clock::now();
  const auto ends = ends_of(ranks_of(4), Seconds(30), [](TcpWorld& w) {
    if (w.rank() == 2) throw RunFault(2, "rank 2: the disk is full");
    get(w, 2, 1);
  });
  for (int rank = 0; rank < 4; ++rank) {
    CHECK(ends[static_cast<std::size_t>(rank)] ==
          (rank == 2 ? "rank 2: the disk is full"
                     : "the run was given up: rank 2: the disk is full"));
  }
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(30));  // the patience
}

TEST_CASE("a rank that computes hears at once of another that is gone, on another thread") {
  const auto ranks = ranks_of(2);
  std::promise<std::string> cause;
  std::thread gone([&] { const TcpWorld world(ranks[1], Seconds(30)); });
  const TcpWorld world(ranks[0], Seconds(30),
                       [&](const std::string& why) { cause.set_value(why); });
  auto heard = cause.get_future();
  const bool in_time = heard.wait_for(std::chrono::seconds(30)) == std::future_status::ready;
  gone.join();
  REQUIRE(in_time);
  CHECK(heard.get() == "rank 1 is gone: its connection to rank 0 ended");
}

TEST_CASE("a rank that has no room for a message says so to the others before it goes") {
  auto ranks = ranks_of(3);
  Detour detour(ranks[1], {});
  ranks[1].ports = {detour.port()};
  const auto ends = ends_of(ranks, Seconds(30), [&](TcpWorld& w) {
    if (w.rank() == 0) {
      const std::array<std::uint64_t, 2> header{1, ~std::uint64_t{0}};  // a tag, and a size
      detour.say_to_rank_0(std::as_bytes(std::span(header)));
    }
    get(w, (w.rank() + 1) % 3, 1);
  });
  CHECK(ends[0].starts_with("rank 0: receiving: "));
  CHECK(ends[1] == "the run was given up: " + ends[0]);
  CHECK(ends[2] == "the run was given up: " + ends[0]);
}

TEST_CASE("patience: a rank that waits itself is not at fault, and one that works is") {
  constexpr Seconds patience(3);  // rank 0 begins to wait when rank 1 is about to, and waits twice
  const auto ends = ends_of(ranks_of(3), patience, [](TcpWorld& w) {
    if (w.rank() == 1) put(w, 0, 1, 1);
    if (w.rank() == 0) get(w, 1, 1);
    if (w.rank() == 0) get(w, 1, runtime::forward_tag(3, 5));
    if (w.rank() == 1) get(w, 2, runtime::collective_tag(9));
    for (;;) {
      w.heed();
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  });
  const std::string cause =
      "rank 1 waited 3 s for a message of collective 9 from rank 2, which waits for nobody";
  CHECK(ends[1] == cause);
  CHECK(ends[0] == "the run was given up: " + cause);
  CHECK(ends[2] == "the run was given up: " + cause);
}

TEST_CASE("a rank that ended without sending is found at once, and a stopped wait ends") {
  auto ends = ends_of(ranks_of(2), Seconds(30), [](TcpWorld& w) {
    if (w.rank() == 0) get(w, 1, runtime::control_tag(4));
  });
  CHECK(ends[0] == "rank 1 ended without sending control message 4 to rank 0");
  ends = ends_of(ranks_of(1), Seconds(30), [](TcpWorld& w) {
    bool stopped = false;
    std::thread other([&] { CHECK_THROWS_AS(w.recv(0, 1, 1, stopped), RunFault); });
    w.stop(stopped);
    other.join();
  });
  CHECK(ends == well(1));
}

TEST_CASE("two runs that use the same ports keep apart, by their names or by their tokens") {
  for (const bool by_name : {true, false}) {
    const int port = free_port();
    auto one = ranks_of(3, port), other = ranks_of(3, port);
    std::vector<Meeting> all;
    for (int rank = 2; rank >= 0; --rank) {
      for (auto* run : {&one, &other}) {
        Meeting meeting = (*run)[static_cast<std::size_t>(rank)];
        meeting.ports = {port, port + 1, port + 2, port + 3};
        if (run == &other) (by_name ? meeting.run : meeting.token) = "another that nobody guesses";
        all.push_back(meeting);
      }
    }
    const auto ends = ends_of(all, Seconds(20), [](TcpWorld& w) {
      put(w, (w.rank() + 1) % 3, 1, w.rank());
      CHECK(get(w, (w.rank() + 2) % 3, 1) == (w.rank() + 2) % 3);
    });
    CHECK(ends == well(6));
  }
}

}  // namespace tcp_world_test
