#include "runtime/ranks/tcp_handshake.hpp"

#include <span>
#include <string_view>

namespace runtime {

namespace {

// FNV-1a.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 14695981039346656037U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return hash;
}

// What a proof is about. The end keeps one from being sent back as the other's.
struct Transcript {
  enum class End : std::uint64_t { connects = 1, listens = 2 };
  End end;
  TcpNonce challenge;
  TcpHello hello;
};
static_assert(sizeof(Transcript) == 8 + sizeof(TcpNonce) + sizeof(TcpHello));

std::span<const std::byte> bytes_of(const Transcript& all) {
  return std::as_bytes(std::span(&all, 1));
}

}  // namespace

TcpHandshake::TcpHandshake(const Meeting& meeting) : key_(meeting.token) {
  self_.run = hash_of(meeting.run);
  self_.rank = meeting.rank;
  self_.world = meeting.world;
}

TcpClaim TcpHandshake::claim(const TcpNonce& challenge, int port) const {
  TcpClaim claim{.hello = self_};
  claim.hello.port = port;
  claim.hello.nonce = random_nonce();
  claim.proof = key_.prove(bytes_of({Transcript::End::connects, challenge, claim.hello}));
  return claim;
}

bool TcpHandshake::of_this_run(const TcpHello& hello) const {
  return hello.magic == self_.magic && hello.run == self_.run;
}

TcpVerdict TcpHandshake::verdict(const TcpNonce& challenge, const TcpClaim& claim) const {
  if (!key_.proves(claim.proof, bytes_of({Transcript::End::connects, challenge, claim.hello})))
    return {.word = TcpVerdict::Word::another_token};
  return {TcpVerdict::Word::welcome,
          key_.prove(bytes_of({Transcript::End::listens, challenge, claim.hello}))};
}

bool TcpHandshake::welcomed(const TcpNonce& challenge, const TcpClaim& claim,
                            const TcpVerdict& verdict) const {
  return verdict.word == TcpVerdict::Word::welcome &&
         key_.proves(verdict.proof, bytes_of({Transcript::End::listens, challenge, claim.hello}));
}

}  // namespace runtime
