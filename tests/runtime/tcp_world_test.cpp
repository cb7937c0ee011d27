// Messages between ranks over TCP, how those find one another, and how a run ends when one cannot
// go on: ranks are threads here, each with connections of its own.
#include "runtime/tcp_world.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/tags.hpp"

using costmodel::Seconds;
using runtime::Meeting;
using runtime::RunFault;
using runtime::TcpWorld;

namespace {

const bool not_stopped = false;

// A port that nobody has, for a moment.
int free_port() {
  boost::asio::io_context io;
  using boost::asio::ip::tcp;
  const tcp::acceptor acceptor(io, {boost::asio::ip::address_v4::loopback(), 0});
  return acceptor.local_endpoint().port();
}

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

using Program = std::function<void(TcpWorld&)>;

// What each rank's program, or the meeting before it, throws; "" for one that ended well.
std::vector<std::string> ends_of(std::vector<Meeting> ranks, Seconds patience,
                                 const Program& program) {
  std::vector<std::string> ends(ranks.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        TcpWorld world(ranks[i], patience);
        try {
          program(world);
          if (!world.part()) ends[i] = "the others did not part";
        } catch (const RunFault& fault) {
          world.give_up(fault.what());
          throw;
        }
      } catch (const std::exception& fault) {
        ends[i] = fault.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return ends;
}

std::vector<Meeting> ranks_of(int world, int port = free_port()) {
  std::vector<Meeting> ranks;
  for (int rank = 0; rank < world; ++rank)
    ranks.push_back({rank, world, "127.0.0.1", {port}, "a run"});
  return ranks;
}

std::vector<std::string> well(int world) {
  return std::vector<std::string>(static_cast<std::size_t>(world));
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
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(10));
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

TEST_CASE("patience: a rank that waits itself is not at fault, and one that works is") {
  const auto ends = ends_of(ranks_of(3), Seconds(0.3), [](TcpWorld& w) {
    if (w.rank() == 0) get(w, 1, runtime::forward_tag(3, 5));
    if (w.rank() == 1) get(w, 2, runtime::collective_tag(9));
    std::this_thread::sleep_for(std::chrono::seconds(2));
    w.heed();
  });
  const std::string cause =
      "rank 1 waited 0.3 s for a message of collective 9 from rank 2, which waits for nobody";
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

TEST_CASE("ranks that do not come, come twice or want another world") {
  auto ranks = ranks_of(4);
  const std::string where = "127.0.0.1, port " + std::to_string(ranks.front().ports.front());
  auto ends = ends_of({ranks[0], ranks[2]}, Seconds(0.5), [](TcpWorld&) {});
  CHECK(ends[0] == "ranks 1, 3 of 4 did not come to " + where + " within 0.5 s");
  CHECK(ends[1] == "the run was given up: " + ends[0]);
  ends = ends_of({ranks[1]}, Seconds(0.5), [](TcpWorld&) {});
  CHECK(ends[0] == "rank 1 found no rank 0 at " + where + " within 0.5 s");
  ranks[3].world = 8;
  ends = ends_of(ranks, Seconds(5), [](TcpWorld&) {});
  CHECK(ends[0] == "rank 3 was started with WORLD_SIZE 8, rank 0 with 4");
  ranks[3] = ranks[2];
  ends = ends_of(ranks, Seconds(5), [](TcpWorld&) {});
  CHECK(ends[0] == "two processes were started with RANK 2");
}

TEST_CASE("two runs that use the same ports keep apart") {
  const int port = free_port();
  auto one = ranks_of(3, port), other = ranks_of(3, port);
  std::vector<Meeting> all;
  for (int rank = 2; rank >= 0; --rank) {
    for (auto* run : {&one, &other}) {
      Meeting meeting = (*run)[static_cast<std::size_t>(rank)];
      meeting.ports = {port, port + 1, port + 2, port + 3};
      if (run == &other) meeting.run = "another run";
      all.push_back(meeting);
    }
  }
  const auto ends = ends_of(all, Seconds(20), [](TcpWorld& w) {
    put(w, (w.rank() + 1) % 3, 1, w.rank());
    CHECK(get(w, (w.rank() + 2) % 3, 1) == (w.rank() + 2) % 3);
  });
  CHECK(ends == well(6));
}

TEST_CASE("what the environment says of a meeting") {
  setenv("RANK", "1", 1);
  setenv("WORLD_SIZE", "2", 1);
  setenv("MASTER_ADDR", "localhost", 1);
  for (const char* port : {"", "0", "65536", "29500x"}) {
    setenv("MASTER_PORT", port, 1);
    CHECK_THROWS_WITH_AS(runtime::meeting(),
                         ("MASTER_PORT '" + std::string(port) + "' is no port").c_str(), RunFault);
  }
  setenv("MASTER_PORT", "29500", 1);
  CHECK(runtime::meeting().ports == std::vector{29500});
  setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1);
  CHECK(runtime::meeting().ports.front() == 29501);
  CHECK(runtime::meeting().ports.size() == 8);
  setenv("MASTER_PORT", "65535", 1);
  CHECK(runtime::meeting().ports.back() == 65527);
  for (const char* name :
       {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_USE_AGENT_STORE"})
    unsetenv(name);
  CHECK_THROWS_AS(runtime::meeting(), RunFault);
}
