// How ranks find one another over TCP, and what is said of those that do not.
#include "runtime/ranks/tcp_rendezvous.hpp"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "tests/runtime/support/tcp_ranks.hpp"
#include "tests/sanitized.hpp"

namespace tcp_rendezvous_test {

using namespace tcp_test;

namespace {

using boost::asio::ip::tcp;

const std::string open_ports =
    "each two ranks connect, at any port that is free: open all ports between their hosts";

std::string given_up(const std::string& cause) { return "the run was given up: " + cause; }

// While it lives, this process gets no more files.
class NoFiles {
 public:
  NoFiles() {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit none = before_;
    none.rlim_cur = 0;
    setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoFiles() { setrlimit(RLIMIT_NOFILE, &before_); }
  NoFiles(const NoFiles&) = delete;
  NoFiles& operator=(const NoFiles&) = delete;

 private:
  rlimit before_{};
};

}  // namespace

TEST_CASE("ranks that do not come, come twice or want another world") {
  auto ranks = ranks_of(4);
  const std::string where = "127.0.0.1, port " + std::to_string(ranks.front().ports.front());
  auto ends = ends_of({ranks[0], ranks[2]}, Seconds(2), [](TcpWorld&) {});
  CHECK(ends[0] == "ranks 1, 3 of 4 did not come to " + where + " within 2 s");
  CHECK(ends[1] == "the run was given up: " + ends[0]);
  ends = ends_of({ranks[1]}, Seconds(0.5), [](TcpWorld&) {});
  CHECK(ends[0] == "rank 1 found no rank 0 at " + where + " within 0.5 s: Connection refused");
  ranks[1].host = "no host has blanks";
  ends = ends_of({ranks[1]}, Seconds(0.5), [](TcpWorld&) {});
  CHECK(ends[0].starts_with("rank 1 found no rank 0 at no host has blanks, port "));
  CHECK(ends[0].find(" within 0.5 s: Host not found") != std::string::npos);
  ranks[1].host = ranks[0].host;
  ranks[3].world = 8;
  ends = ends_of(ranks, Seconds(30), [](TcpWorld&) {});
  CHECK(ends[0] == "rank 3 was started with WORLD_SIZE 8, rank 0 with 4");
  ranks[3] = ranks[2];
  ends = ends_of(ranks, Seconds(30), [](TcpWorld&) {});
  CHECK(ends[0] == "two processes were started with RANK 2");
}

TEST_CASE("a rank that another cannot reach: all end at once, with both names, place and remedy") {
  auto ranks = ranks_of(4);
  const Detour detour(ranks[0].ports.front(), {.port = 1});
  ranks[2].ports = {detour.port()};
  const auto ends = ends_of(ranks, Seconds(30), [](TcpWorld&) {});
  const std::string cause =
      "rank 3 cannot reach rank 2 at 127.0.0.1, port 1: Connection refused; " + open_ports;
  CHECK(ends == std::vector{cause, given_up(cause), given_up(cause), cause});
}

TEST_CASE("a rank that is gone before all have reached one another is named on all that are left") {
  auto ranks = ranks_of(3);
  const Detour detour(ranks[0].ports.front(), {.cut_at_table = true});
  ranks[1].ports = {detour.port()};
  const auto ends = ends_of(ranks, Seconds(30), [](TcpWorld&) {});
  const std::string cause =
      "rank 1 is gone: its connection to rank 0 ended while the ranks connected to one another";
  CHECK(ends[0] == cause);
  CHECK(ends[1].starts_with("rank 0 at 127.0.0.1, port "));
  CHECK(ends[1].ends_with(
      " is gone: its connection to rank 1 ended before it said where the others are"));
  CHECK(ends[2] == given_up(cause));
}

TEST_CASE("a rank that waits in vain for another to connect says where it listened") {
  auto ranks = ranks_of(3);
  boost::asio::io_context io;
  const tcp::acceptor another(io, {boost::asio::ip::address_v4::loopback(), 0});
  const Detour detour(ranks[0].ports.front(), {.port = another.local_endpoint().port()});
  ranks[1].ports = {detour.port()};
  const auto ends = ends_of(ranks, Seconds(4), [](TcpWorld&) {});
  const std::string cause = "rank 1: rank 2 of 3 did not come to 127.0.0.1, port " +
                            std::to_string(detour.said_port()) + " within 4 s; " + open_ports;
  CHECK(ends == std::vector{cause, cause, given_up(cause)});
}

TEST_CASE("a port that rank 0 cannot listen at is told with what hindered it") {
  boost::asio::io_context io;
  const tcp::acceptor other(io, {boost::asio::ip::address_v4::loopback(), 0});
  const int port = other.local_endpoint().port();
  const auto ends = ends_of({ranks_of(2, port)[0]}, Seconds(0.5), [](TcpWorld&) {});
  CHECK(ends[0] == "rank 0 cannot listen at 127.0.0.1, port " + std::to_string(port) +
                       ": Address already in use; choose another MASTER_PORT");
}

// The undefined-behaviour sanitizer opens a file to look at an object, and takes it for none.
TEST_CASE("rank 0 that runs out of files says so at once, and does not blame the others" *
          doctest::skip(sanitized)) {
  const auto ranks = ranks_of(2);
  boost::asio::io_context io;
  tcp::socket first(io, tcp::v4()), second(io, tcp::v4());
  std::string end;
  std::thread rank_0([&] { end = ends_of({ranks[0]}, Seconds(30), [](TcpWorld&) {}).front(); });
  const tcp::endpoint at(boost::asio::ip::address_v4::loopback(),
                         static_cast<unsigned short>(ranks[0].ports.front()));
  for (boost::system::error_code code; first.connect(at, code), code;)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  {
    const NoFiles none;
    second.connect(at);
    first.close();  // which rank 0 may have begun to listen to
    rank_0.join();
  }
  CHECK(end == "rank 0 cannot take connections: Too many open files (raise ulimit -n)");
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

}  // namespace tcp_rendezvous_test
