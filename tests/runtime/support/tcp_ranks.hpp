// Ranks that connect over TCP, as threads of the test, each with its own connections.
#pragma once

#include <unistd.h>

#include <array>
#include <atomic>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

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

inline std::vector<Meeting> ranks_of(int world, int port = free_port()) {
  std::vector<Meeting> ranks;
  for (int rank = 0; rank < world; ++rank)
    ranks.push_back({rank, world, "127.0.0.1", {port}, "a run"});
  return ranks;
}

inline std::vector<std::string> well(int world) {
  return std::vector<std::string>(static_cast<std::size_t>(world));
}

// What stands between a rank and rank 0: bytes pass it both ways, but for what it is told to
// change.
class Detour {
 public:
  // As tcp_rendezvous writes what a process says first.
  static constexpr std::size_t hello_bytes = 32, port_at = 24;
  struct Changes {
    int port = 0;               // that the rank says it listens on; 0: what it says itself
    bool cut_at_table = false;  // both connections end where rank 0 says where the others are
  };

  Detour(int rank_0s_port, const Changes& changes)
      : acceptor_(io_, {boost::asio::ip::address_v4::loopback(), 0}),
        rank_(io_),
        rank_0_(io_),
        thread_([this, rank_0s_port, changes] { work(rank_0s_port, changes); }) {}
  ~Detour() { thread_.join(); }
  Detour(const Detour&) = delete;
  Detour& operator=(const Detour&) = delete;

  int port() const { return acceptor_.local_endpoint().port(); }
  int said_port() const { return said_port_; }  // by the rank itself
  // Behind all that the rank itself has said and while it says nothing.
  void say_to_rank_0(std::span<const std::byte> bytes) {
    boost::asio::write(rank_0_, boost::asio::buffer(bytes.data(), bytes.size()));
  }

 private:
  using Socket = boost::asio::ip::tcp::socket;

  void work(int rank_0s_port, const Changes& changes) {
    acceptor_.accept(rank_);
    std::array<char, hello_bytes> hello{};
    boost::asio::read(rank_, boost::asio::buffer(hello));
    const std::int32_t other = changes.port;
    std::int32_t said = 0;
    std::memcpy(&said, hello.data() + port_at, sizeof said);
    said_port_ = said;
    if (other > 0) std::memcpy(hello.data() + port_at, &other, sizeof other);
    const boost::asio::ip::tcp::endpoint to(boost::asio::ip::address_v4::loopback(),
                                            static_cast<unsigned short>(rank_0s_port));
    for (boost::system::error_code code; rank_0_.connect(to, code), code;)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    boost::asio::write(rank_0_, boost::asio::buffer(hello));
    std::thread back([&] { pass(rank_0_, rank_, changes.cut_at_table); });
    pass(rank_, rank_0_, false);
    back.join();
  }

  // The welcome is a byte and a length; the table comes next.
  static void pass(Socket& from, Socket& to, bool cut) {
    constexpr std::size_t welcome = 1 + sizeof(std::uint64_t);
    boost::system::error_code code, ignored;
    std::array<char, 4096> bytes{};
    for (std::size_t passed = 0; !code;) {
      const std::size_t most = cut && passed < welcome ? welcome - passed : bytes.size();
      const std::size_t size = from.read_some(boost::asio::buffer(bytes.data(), most), code);
      if (size == 0 || (cut && passed == welcome)) break;
      boost::asio::write(to, boost::asio::buffer(bytes.data(), size), code);
      passed += size;
    }
    from.shutdown(Socket::shutdown_both, ignored);
    to.shutdown(Socket::shutdown_both, ignored);
  }

  boost::asio::io_context io_;
  boost::asio::ip::tcp::acceptor acceptor_;
  Socket rank_, rank_0_;
  std::atomic<int> said_port_ = 0;
  std::thread thread_;
};

}  // namespace tcp_test
