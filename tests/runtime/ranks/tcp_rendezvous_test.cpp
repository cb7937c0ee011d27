// How ranks find one another over TCP, and what is said of those that do not. Takes 7 s, for which
// ranks wait in vain.
#include "runtime/ranks/tcp_rendezvous.hpp"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdlib>
#include <deque>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "tests/runtime/support/tcp_ranks.hpp"
#include "tests/sanitized.hpp"

namespace tcp_rendezvous_test {

using namespace tcp_test;

namespace {

using boost::asio::ip::tcp;
using runtime::TcpClaim;
using runtime::TcpNonce;
using runtime::TcpVerdict;

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
  const Detour detour(ranks[2], {.port = 1});
  ranks[2].ports = {detour.port()};
  const auto ends = ends_of(ranks, Seconds(30), [](TcpWorld&) {});
  const std::string cause =
      "rank 3 cannot reach rank 2 at 127.0.0.1, port 1: Connection refused; " + open_ports;
  CHECK(ends == std::vector{cause, given_up(cause), given_up(cause), cause});
}

TEST_CASE("a rank that is gone before all have reached one another is named on all that are left") {
  auto ranks = ranks_of(3);
  const Detour detour(ranks[1], {.cut_at_table = true});
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

TEST_CASE("a rank that finds no rank where another is to listen says where that is") {
  auto ranks = ranks_of(3);
  boost::asio::io_context io;
  const tcp::acceptor another(io, {boost::asio::ip::address_v4::loopback(), 0});
  const int port = another.local_endpoint().port();
  const Detour detour(ranks[1], {.port = port});
  ranks[1].ports = {detour.port()};
  const auto ends = ends_of(ranks, Seconds(1), [](TcpWorld&) {});
  const std::string cause = "rank 2 cannot reach rank 1 at 127.0.0.1, port " +
                            std::to_string(port) + ": who answers there is none of this run; " +
                            open_ports;
  CHECK(ends == std::vector{cause, given_up(cause), cause});
}

TEST_CASE("strangers of every kind keep nobody waiting, however many they are") {
  using Texts = std::vector<std::string>;
  const std::string hello = "shardpl1 and 24 other bytes, 32";  // of an earlier version
  const Texts kinds{"",
                    "s",
                    hello,
                    std::string(48, '?'),
                    "GET / HTTP/1.1\r\n\r\n",
                    "???",
                    "\n\n",
                    hello + hello + hello + hello,
                    std::string(100'000, '?')};
  for (const Texts& said : {Texts(20), Texts(200), kinds}) {
    const auto ranks = ranks_of(3);
    std::deque<Stranger> strangers;
    std::jthread drip;  // a byte now and then
    const auto come = [&] {
      for (const std::string& text : said) strangers.emplace_back(ranks[0].ports[0]).say(text);
      drip = std::jthread([&](const std::stop_token& stop) {
        for (; !stop.stop_requested(); std::this_thread::sleep_for(std::chrono::milliseconds(5)))
          strangers.back().say("s");
      });
    };
    // 20 silent ones ended a run that served each for 2 s.
    const auto ends =
        ends_of({ranks[0]}, come, {ranks[1], ranks[2]}, Seconds(30), [](TcpWorld&) {});
    CHECK(ends == well(3));
  }
}

TEST_CASE("strangers at the port of another rank than 0 keep nobody waiting either") {
  auto ranks = ranks_of(3);
  const Detour detour(ranks[1], {});
  ranks[1].ports = {detour.port()};
  std::deque<Stranger> strangers;
  const auto come = [&] {
    for (int i = 0; i < 100; ++i) strangers.emplace_back(detour.said_port());
  };
  const auto ends = ends_of({ranks[0], ranks[1]}, come, {ranks[2]}, Seconds(30), [](TcpWorld&) {});
  CHECK(ends == well(3));
}

TEST_CASE("what a rank once sent takes its place neither when it has come nor before") {
  const auto ranks = ranks_of(3);
  TcpClaim recorded;
  const auto replay = [&] {
    for (TcpClaim claim = recorded; claim.hello.rank < 3; ++claim.hello.rank) {
      CHECK(Stranger(ranks[0].ports.front()).answer_to(claim).word ==
            TcpVerdict::Word::another_token);
    }
  };
  const auto nothing = [](TcpWorld&) {};
  {
    const Detour detour(ranks[1], {});
    Meeting behind = ranks[1];
    behind.ports = {detour.port()};
    const auto come = [&] {
      recorded = detour.claim();
      replay();
    };
    CHECK(ends_of({ranks[0], behind}, come, {ranks[2]}, Seconds(30), nothing) == well(3));
  }
  CHECK(ends_of({ranks[0]}, replay, {ranks[1], ranks[2]}, Seconds(30), nothing) == well(3));
}

TEST_CASE("a rank with another token is named where it is missed, and told so itself") {
  auto ranks = ranks_of(3);
  ranks[2].token = "another token nobody guesses";
  const auto ends = ends_of(ranks, Seconds(2), [](TcpWorld&) {});
  const std::string port = std::to_string(ranks[0].ports.front());
  CHECK(ends[0] == "rank 2 of 3 did not come to 127.0.0.1, port " + port +
                       " within 2 s; who came as rank 2 has another token than rank 0: give all "
                       "ranks the same SHARDPLAN_TOKEN");
  CHECK(ends[1] == given_up(ends[0]));
  CHECK(ends[2] == "rank 2 found no rank 0 at 127.0.0.1, port " + port +
                       " within 2 s: who answers there has another token than rank 2: give all "
                       "ranks the same SHARDPLAN_TOKEN");
}

TEST_CASE("who listens where rank 0 might, and welcomes ranks without knowing the token") {
  const int impostors_port = free_port();
  boost::asio::io_context io;
  tcp::acceptor acceptor(
      io, {boost::asio::ip::address_v4::loopback(), static_cast<unsigned short>(impostors_port)});
  std::thread impostor([&] {
    Socket rank = acceptor.accept();
    TcpClaim claim;
    write(rank, runtime::random_nonce());
    read(rank, claim);
    write(rank, TcpVerdict{TcpVerdict::Word::welcome, claim.proof});
  });
  auto ranks = ranks_of(2);
  const int port = ranks[0].ports.front();
  for (auto& rank : ranks) rank.ports = {impostors_port, port};
  const auto listens = [&] { const Stranger stranger(port); };
  CHECK(ends_of({ranks[0]}, listens, {ranks[1]}, Seconds(30), [](TcpWorld&) {}) == well(2));
  impostor.join();
}

TEST_CASE("where other hosts reach rank 0, no rank begins without a token") {
  auto ranks = ranks_of(2);
  for (auto& rank : ranks) rank.host = "203.0.113.1";  // of no host (RFC 5737)
  const auto port = std::to_string(ranks[0].ports.front());
  auto ends = ends_of({ranks[0]}, Seconds(30), [](TcpWorld&) {});
  CHECK(ends[0] == "rank 0 cannot listen at 203.0.113.1, port " + port +
                       ": Cannot assign requested address; MASTER_ADDR has to be an address of "
                       "its host");
  for (auto& rank : ranks) rank.token = "";
  ends = ends_of(ranks, Seconds(30), [](TcpWorld&) {});
  for (std::size_t rank : {0, 1}) {
    CHECK(ends[rank].starts_with("rank " + std::to_string(rank) +
                                 " has no SHARDPLAN_TOKEN, and other hosts reach MASTER_ADDR "));
  }
  for (auto& rank : ranks) rank.ranks_here = 2;
  CHECK(ends_of(ranks, Seconds(30), [](TcpWorld&) {}) == well(2));
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
  TcpNonce challenge;
  std::string end;
  std::thread rank_0([&] { end = ends_of({ranks[0]}, Seconds(30), [](TcpWorld&) {}).front(); });
  const tcp::endpoint at(boost::asio::ip::address_v4::loopback(),
                         static_cast<unsigned short>(ranks[0].ports.front()));
  connect(first, ranks[0].ports.front());
  read(first, challenge);
  {
    const NoFiles none;
    second.connect(at);
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
  CHECK(runtime::meeting().token.empty());
  CHECK(runtime::meeting().ranks_here == 0);
  setenv("SHARDPLAN_TOKEN", "secret", 1);
  CHECK_THROWS_WITH_AS(runtime::meeting(),
                       "SHARDPLAN_TOKEN has 6 characters, which is easily guessed: give all ranks "
                       "one of 16 at least, such as openssl rand -hex 16 prints",
                       RunFault);
  setenv("SHARDPLAN_TOKEN", "sixteen or more.", 1);
  setenv("LOCAL_WORLD_SIZE", "2", 1);
  CHECK(runtime::meeting().token == "sixteen or more.");
  CHECK(runtime::meeting().ranks_here == 2);
  setenv("MASTER_PORT", "65535", 1);
  CHECK(runtime::meeting().ports.back() == 65527);
  for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
                           "SHARDPLAN_TOKEN", "TORCHELASTIC_USE_AGENT_STORE"})
    unsetenv(name);
  CHECK_THROWS_AS(runtime::meeting(), RunFault);
}

}  // namespace tcp_rendezvous_test
