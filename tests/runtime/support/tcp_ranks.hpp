// Ranks that connect over TCP, as threads of the test, each with its own connections.
#pragma once

#include <unistd.h>

#include <array>
#include <atomic>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <future>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "runtime/ranks/tcp_handshake.hpp"
#include "runtime/ranks/tcp_world.hpp"

namespace tcp_test {

using costmodel::Seconds;
using runtime::Meeting;
using runtime::RunFault;
using runtime::TcpWorld;

// A port that nobody listens at. Systems give connections ports from 32768 on, and other tests, at
// the same time, are other processes, which begin elsewhere.
inline int free_port() {
  using boost::asio::ip::tcp;
  static std::atomic<int> drawn = 0;
  boost::asio::io_context io;
  for (;;) {
    const int port = 10000 + (32 * getpid() + drawn++) % 10000;
    tcp::acceptor acceptor(io, tcp::v4());
    acceptor.set_option(tcp::acceptor::reuse_address(true));
    boost::system::error_code taken;
    acceptor.bind({tcp::v4(), static_cast<unsigned short>(port)}, taken);
    if (!taken) acceptor.listen(1, taken);
    if (!taken) return port;
  }
}

using Program = std::function<void(TcpWorld&)>;

// What each rank's program, or the meeting before it, throws; "" for one that ended well.
inline std::vector<std::string> ends_of(std::vector<Meeting> ranks, Seconds patience,
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

// The same where the first ranks come alone, and the others once `between` has returned.
inline std::vector<std::string> ends_of(const std::vector<Meeting>& first,
                                        const std::function<void()>& between,
                                        const std::vector<Meeting>& others, Seconds patience,
                                        const Program& program) {
  auto ends = std::async(std::launch::async, [&] { return ends_of(first, patience, program); });
  between();
  const auto more = ends_of(others, patience, program);
  auto all = ends.get();
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

inline std::vector<Meeting> ranks_of(int world, int port = free_port()) {
  std::vector<Meeting> ranks;
  for (int rank = 0; rank < world; ++rank) {
    ranks.push_back({.rank = rank,
                     .world = world,
                     .host = "127.0.0.1",
                     .ports = {port},
                     .run = "a run",
                     .token = "a token nobody guesses"});
  }
  return ranks;
}

inline std::vector<std::string> well(int world) {
  return std::vector<std::string>(static_cast<std::size_t>(world));
}

using Socket = boost::asio::ip::tcp::socket;

// Connects to a port of this host as soon as someone listens there.
inline void connect(Socket& socket, int port) {
  const boost::asio::ip::tcp::endpoint to(boost::asio::ip::address_v4::loopback(),
                                          static_cast<unsigned short>(port));
  for (boost::system::error_code code; socket.connect(to, code), code;)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

// Reads or writes a message of the handshake as it lies in memory.
template <class Message>
void read(Socket& from, Message& message) {
  boost::asio::read(from, boost::asio::buffer(&message, sizeof message));
}
template <class Message>
void write(Socket& to, const Message& message) {
  boost::asio::write(to, boost::asio::buffer(&message, sizeof message));
}

// Who connects to a port and gets a challenge: a rank that listens there serves it from then on.
struct Stranger {
  explicit Stranger(int port) : socket(io) {
    connect(socket, port);
    read(socket, challenge);
  }
  // Ignores errors: who listens may have hung up.
  void say(const std::string& text) {
    boost::system::error_code ignored;
    boost::asio::write(socket, boost::asio::buffer(text), ignored);
  }
  runtime::TcpVerdict answer_to(const runtime::TcpClaim& claim) {
    runtime::TcpVerdict verdict;
    write(socket, claim);
    read(socket, verdict);
    return verdict;
  }

  boost::asio::io_context io;
  Socket socket;
  runtime::TcpNonce challenge;
};

// What stands between a rank and rank 0, and knows their token: bytes pass it both ways, but for
// what it is told to change.
class Detour {
 public:
  struct Changes {
    int port = 0;               // that the rank says it listens on; 0: what it says itself
    bool cut_at_table = false;  // both connections end where rank 0 says where the others are
  };

  // Leads to the first of the rank's ports.
  Detour(const Meeting& rank, const Changes& changes)
      : acceptor_(io_, {boost::asio::ip::address_v4::loopback(), 0}),
        rank_(io_),
        rank_0_(io_),
        thread_([this, rank, changes] { work(rank, changes); }) {}
  ~Detour() { thread_.join(); }
  Detour(const Detour&) = delete;
  Detour& operator=(const Detour&) = delete;

  int port() const { return acceptor_.local_endpoint().port(); }
  // Waits until rank 0 has answered. What the rank itself sent to prove that it is one; the port
  // that it listens on.
  const runtime::TcpClaim& claim() const {
    said_port_.wait(0);
    return claim_;
  }
  int said_port() const { return claim().hello.port; }
  // Behind all that the rank itself has said and while it says nothing.
  void say_to_rank_0(std::span<const std::byte> bytes) {
    boost::asio::write(rank_0_, boost::asio::buffer(bytes.data(), bytes.size()));
  }

 private:
  void work(const Meeting& rank, const Changes& changes) {
    const runtime::TcpHandshake handshake(rank);
    runtime::TcpNonce challenge;
    runtime::TcpVerdict verdict;
    acceptor_.accept(rank_);
    connect(rank_0_, rank.ports.front());
    read(rank_0_, challenge);
    write(rank_, challenge);
    read(rank_, claim_);
    write(rank_0_, changes.port == 0 ? claim_ : handshake.claim(challenge, changes.port));
    read(rank_0_, verdict);
    write(rank_, handshake.verdict(challenge, claim_));
    said_port_ = claim_.hello.port;
    said_port_.notify_all();
    std::thread back([&] { pass(rank_0_, rank_, changes.cut_at_table); });
    pass(rank_, rank_0_, false);
    back.join();
  }

  // The table comes next.
  static void pass(Socket& from, Socket& to, bool cut) {
    boost::system::error_code code, ignored;
    std::array<char, 4096> bytes{};
    while (!code) {
      const std::size_t size = from.read_some(boost::asio::buffer(bytes), code);
      if (size == 0 || cut) break;
      boost::asio::write(to, boost::asio::buffer(bytes.data(), size), code);
    }
    from.shutdown(Socket::shutdown_both, ignored);
    to.shutdown(Socket::shutdown_both, ignored);
  }

  boost::asio::io_context io_;
  boost::asio::ip::tcp::acceptor acceptor_;
  Socket rank_, rank_0_;
  runtime::TcpClaim claim_;
  std::atomic<int> said_port_ = 0;
  std::thread thread_;
};

}  // namespace tcp_test
