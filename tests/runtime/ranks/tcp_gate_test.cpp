// Who gets past a listening rank, who does not, and that nobody waits for anybody else.
#include "runtime/ranks/tcp_gate.hpp"

#include <doctest/doctest.h>

#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <chrono>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <string>

namespace tcp_gate_test {

using boost::asio::ip::make_address;
using boost::asio::ip::tcp;
using runtime::Meeting;
using runtime::TcpClaim;
using runtime::TcpGate;
using runtime::TcpHandshake;
using runtime::TcpNonce;
using runtime::TcpVerdict;

namespace {

constexpr int world = 4;

TcpHandshake rank_of(int rank, const std::string& token = "a token") {
  return TcpHandshake({.rank = rank,
                       .world = world,
                       .host = "localhost",
                       .ports = {29500},
                       .run = "a run",
                       .token = token});
}

// Rank 0's gate and who connects to it, in one thread.
struct Gate {
  Gate() { REQUIRE_FALSE(gate.listen({make_address("127.0.0.1")}, 0)); }

  void until(const std::function<bool()>& holds) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    io.restart();
    while (!holds() && io.run_one_until(deadline) > 0) continue;
    REQUIRE(holds());
  }

  tcp::socket connected() {
    tcp::socket socket(io);
    socket.connect(gate.place());
    return socket;
  }

  // Reads what comes, or finds that the gate hung up.
  template <class Message>
  bool hears(tcp::socket& from, Message& message) {
    std::optional<boost::system::error_code> end;
    boost::asio::async_read(from, boost::asio::buffer(&message, sizeof message),
                            [&](const auto& code, std::size_t) { end = code; });
    until([&] { return end.has_value(); });
    return !*end;
  }

  // What the gate answers to a rank's claim; 'x' when it hangs up.
  char answer(const std::function<TcpClaim(const TcpNonce&)>& claim) {
    auto socket = connected();
    TcpNonce challenge;
    REQUIRE(hears(socket, challenge));
    const TcpClaim made = claim(challenge);
    boost::asio::write(socket, boost::asio::buffer(&made, sizeof made));
    TcpVerdict verdict;
    return hears(socket, verdict) ? static_cast<char>(verdict.word) : 'x';
  }

  boost::asio::io_context io;
  TcpHandshake handshake = rank_of(0);
  TcpGate gate{io, handshake, world};
};

}  // namespace

TEST_CASE("a rank passes 200 silent strangers, of whom those that came first are dropped") {
  Gate at;
  std::deque<tcp::socket> strangers;
  for (int i = 0; i < 200; ++i) strangers.push_back(at.connected());
  CHECK(at.answer([](const TcpNonce& c) { return rank_of(3).claim(c, 4711); }) == 'w');
  const auto guest = at.gate.next();
  REQUIRE(guest);
  CHECK(guest->hello.rank == 3);
  CHECK(guest->hello.port == 4711);
  constexpr std::size_t dropped = 200 + 1 - (TcpGate::spare + world);
  for (std::size_t i = 0; i < strangers.size(); ++i) {
    TcpNonce challenge;
    CHECK(at.hears(strangers[i], challenge));
    boost::system::error_code code;
    std::byte byte{};
    strangers[i].non_blocking(true);
    strangers[i].receive(boost::asio::buffer(&byte, 1), 0, code);
    CHECK(code.value() == (i < dropped ? int{boost::asio::error::eof} : EWOULDBLOCK));
  }
}

TEST_CASE("recorded, changed and other tokens' claims are refused, and the rank is noted") {
  Gate at;
  TcpClaim recorded;
  CHECK(at.answer([&](const TcpNonce& c) { return recorded = rank_of(1).claim(c, 1); }) == 'w');
  CHECK(at.gate.next());
  CHECK(at.gate.with_another_token().empty());
  CHECK(at.answer([&](const TcpNonce&) { return recorded; }) == 'a');
  CHECK(at.answer([](const TcpNonce& c) { return rank_of(3, "other").claim(c, 1); }) == 'a');
  CHECK(at.answer([](const TcpNonce& c) { return rank_of(77, "other").claim(c, 1); }) == 'a');
  CHECK(at.gate.with_another_token() == std::set{1, 3});
  CHECK_FALSE(at.gate.next());
}

TEST_CASE("the gate hangs up on who is of another run, and listens to no other talk") {
  Gate at;
  const auto of_another_run = [](const TcpNonce& challenge) {
    TcpClaim claim = rank_of(1).claim(challenge, 1);
    ++claim.hello.run;
    return claim;
  };
  CHECK(at.answer(of_another_run) == 'x');
  CHECK(at.answer([](const TcpNonce&) { return TcpClaim{.hello = {.magic = {}}}; }) == 'x');
  CHECK(at.gate.with_another_token().empty());
  CHECK_FALSE(at.gate.has_news());
}

TEST_CASE("a gate is at the addresses it was told, and nowhere else") {
  Gate at;
  const auto port = at.gate.place().port();
  boost::system::error_code code;
  tcp::socket(at.io).connect({make_address("127.0.0.2"), port}, code);
  CHECK(code == boost::asio::error::connection_refused);
  CHECK_FALSE(at.gate.listen({make_address("127.0.0.2"), make_address("203.0.113.1")}, port));
  CHECK(at.gate.place() == tcp::endpoint(make_address("127.0.0.2"), port));
  tcp::socket(at.io).connect({make_address("127.0.0.1"), port}, code);
  CHECK(code == boost::asio::error::connection_refused);
  CHECK(at.gate.listen({make_address("203.0.113.1")}, port) ==
        boost::system::errc::address_not_available);
  CHECK(at.gate.place().port() == 0);
}

TEST_CASE("a gate does not share its port") {
  Gate at, other;
  const auto taken = at.gate.place();
  CHECK(other.gate.listen({make_address("127.0.0.2"), taken.address()}, taken.port()) ==
        boost::asio::error::address_in_use);
  CHECK(other.gate.place().port() == 0);
  CHECK(at.answer([](const TcpNonce& c) { return rank_of(2).claim(c, 1); }) == 'w');
}

}  // namespace tcp_gate_test
