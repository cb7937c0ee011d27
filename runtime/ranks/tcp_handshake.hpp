// How two processes prove to one another that they are ranks of one run, without sending the token:
// the listener sends a challenge, the other end its hello and a proof over both, and the listener a
// proof of its own or a refusal. A challenge and a hello are new for each connection, so whatever
// was recorded on another one proves nothing.
#pragma once

#include <array>
#include <cstdint>

#include "runtime/ranks/meeting.hpp"
#include "runtime/ranks/tcp_proof.hpp"

namespace runtime {

// What a connecting process says of itself. All ranks run the same program on the same kind of
// machine, so structs are sent as they lie in memory.
struct TcpHello {
  std::array<char, 8> magic{'s', 'h', 'a', 'r', 'd', 'p', 'l', '2'};
  std::uint64_t run = 0;  // a hash of Meeting::run
  std::int32_t rank = 0, world = 0;
  std::int32_t port = 0;  // that it listens on
  std::int32_t reserved = 0;
  TcpNonce nonce{};
};

struct TcpClaim {
  TcpHello hello;
  TcpProof proof{};
};

struct TcpVerdict {
  enum class Word : char { welcome = 'w', another_token = 'a' };
  Word word{};
  TcpProof proof{};  // of a welcome
};

static_assert(sizeof(TcpClaim) == 96 && sizeof(TcpVerdict) == 33);  // nothing lies between

// Both ends: the messages of one rank, and what it makes of others'.
class TcpHandshake {
 public:
  // Throws what TcpKey throws.
  explicit TcpHandshake(const Meeting& meeting);

  TcpClaim claim(const TcpNonce& challenge, int port) const;
  bool of_this_run(const TcpHello& hello) const;
  // Welcomes a claim with a proof by this run's token.
  TcpVerdict verdict(const TcpNonce& challenge, const TcpClaim& claim) const;
  // Whether who answered the claim with this verdict welcomes, and knows the token itself.
  bool welcomed(const TcpNonce& challenge, const TcpClaim& claim, const TcpVerdict& verdict) const;

 private:
  TcpHello self_;
  TcpKey key_;
};

}  // namespace runtime
