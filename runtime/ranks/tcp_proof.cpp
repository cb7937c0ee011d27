#include "runtime/ranks/tcp_proof.hpp"

#include <sodium.h>

#include <stdexcept>

namespace runtime {

namespace {

static_assert(sizeof(TcpProof) == crypto_auth_BYTES);

const unsigned char* octets(const std::byte* bytes) {
  return reinterpret_cast<const unsigned char*>(bytes);
}

void start_sodium() {
  if (sodium_init() < 0) throw std::runtime_error("libsodium does not start");
}

}  // namespace

TcpNonce random_nonce() {
  start_sodium();
  TcpNonce nonce;
  randombytes_buf(nonce.data(), nonce.size());
  return nonce;
}

TcpKey::TcpKey(std::string_view token) {
  static_assert(sizeof key_ == crypto_auth_KEYBYTES);
  start_sodium();
  crypto_generichash(key_.data(), key_.size(), reinterpret_cast<const unsigned char*>(token.data()),
                     token.size(), nullptr, 0);
}

TcpProof TcpKey::prove(std::span<const std::byte> text) const {
  TcpProof proof;
  crypto_auth(reinterpret_cast<unsigned char*>(proof.data()), octets(text.data()), text.size(),
              key_.data());
  return proof;
}

bool TcpKey::proves(const TcpProof& proof, std::span<const std::byte> text) const {
  return crypto_auth_verify(octets(proof.data()), octets(text.data()), text.size(), key_.data()) ==
         0;
}

}  // namespace runtime
