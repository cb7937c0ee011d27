// Proofs that the other end of a connection knows the run's token, which is never sent.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace runtime {

using TcpNonce = std::array<std::byte, 32>;
using TcpProof = std::array<std::byte, 32>;

// Random bytes from the system (getrandom).
TcpNonce random_nonce();

// A token as a key: BLAKE2b of it (RFC 7693). A proof of a text is its HMAC-SHA512/256 under the
// key (RFC 2104, crypto_auth of libsodium). Both throw std::runtime_error when libsodium does not
// start.
class TcpKey {
 public:
  explicit TcpKey(std::string_view token);
  TcpProof prove(std::span<const std::byte> text) const;
  // Compares in constant time.
  bool proves(const TcpProof& proof, std::span<const std::byte> text) const;

 private:
  std::array<unsigned char, 32> key_{};
};

}  // namespace runtime
