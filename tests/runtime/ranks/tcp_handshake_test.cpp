// Who is welcomed as a rank, and whose welcome counts.
#include "runtime/ranks/tcp_handshake.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <string>

namespace tcp_handshake_test {

using runtime::TcpClaim;
using runtime::TcpHandshake;
using runtime::TcpNonce;
using runtime::TcpVerdict;
using Word = TcpVerdict::Word;

namespace {

TcpHandshake handshake(int rank, const std::string& token = "a token",
                       const std::string& run = "a run") {
  return TcpHandshake({.rank = rank,
                       .world = 4,
                       .host = "localhost",
                       .ports = {29500},
                       .run = run,
                       .token = token});
}

const TcpNonce challenge = runtime::random_nonce(), another = runtime::random_nonce();

}  // namespace

TEST_CASE("two ranks that know the token welcome one another") {
  const auto listens = handshake(0), connects = handshake(3);
  const TcpClaim claim = connects.claim(challenge, 4711);
  CHECK(claim.hello.rank == 3);
  CHECK(claim.hello.world == 4);
  CHECK(claim.hello.port == 4711);
  CHECK(listens.of_this_run(claim.hello));
  const TcpVerdict verdict = listens.verdict(challenge, claim);
  CHECK(verdict.word == Word::welcome);
  CHECK(connects.welcomed(challenge, claim, verdict));
}

TEST_CASE("what was recorded on one connection proves nothing on another") {
  const auto listens = handshake(0), connects = handshake(3);
  const TcpClaim claim = connects.claim(challenge, 4711);
  CHECK(listens.verdict(another, claim).word == Word::another_token);
  const TcpClaim next = connects.claim(challenge, 4711);
  CHECK_FALSE(connects.welcomed(challenge, next, listens.verdict(challenge, claim)));
}

TEST_CASE("a claim that was changed is refused") {
  const std::function<void(TcpClaim&)> changes[] = {
      [](TcpClaim& c) { c.hello.rank = 2; }, [](TcpClaim& c) { c.hello.world = 5; },
      [](TcpClaim& c) { c.hello.port = 1; }, [](TcpClaim& c) { c.hello.nonce = another; },
      [](TcpClaim& c) { c.proof = {}; }};
  for (const auto& change : changes) {
    TcpClaim claim = handshake(3).claim(challenge, 4711);
    change(claim);
    CHECK(handshake(0).verdict(challenge, claim).word == Word::another_token);
  }
}

TEST_CASE("neither end passes with another token, or with the other end's own proof") {
  const auto listens = handshake(0), connects = handshake(3), other = handshake(3, "another");
  const TcpClaim claim = connects.claim(challenge, 1);
  CHECK(listens.verdict(challenge, other.claim(challenge, 1)).word == Word::another_token);
  CHECK(listens.verdict(challenge, handshake(3, "").claim(challenge, 1)).word ==
        Word::another_token);
  CHECK_FALSE(connects.welcomed(challenge, claim, other.verdict(challenge, claim)));
  CHECK_FALSE(connects.welcomed(challenge, claim, {Word::welcome, {}}));
  CHECK_FALSE(connects.welcomed(challenge, claim, {Word::welcome, claim.proof}));
}

TEST_CASE("another run, or another program, is none of this run") {
  const auto listens = handshake(0);
  CHECK_FALSE(
      listens.of_this_run(handshake(3, "a token", "another run").claim(challenge, 1).hello));
  auto hello = handshake(3).claim(challenge, 1).hello;
  hello.magic[7] = '1';
  CHECK_FALSE(listens.of_this_run(hello));
}

}  // namespace tcp_handshake_test
