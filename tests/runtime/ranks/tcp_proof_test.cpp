// What proves that someone knows a token, and what does not.
#include "runtime/ranks/tcp_proof.hpp"

#include <doctest/doctest.h>

#include <set>
#include <span>
#include <string_view>

namespace tcp_proof_test {

using runtime::TcpKey;
using runtime::TcpProof;

namespace {

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

}  // namespace

TEST_CASE("a proof holds for its text and token alone") {
  const TcpKey key("a token"), same("a token"), other("a tokem"), none("");
  const TcpProof proof = key.prove(bytes("I am rank 1"));
  CHECK(same.proves(proof, bytes("I am rank 1")));
  CHECK_FALSE(key.proves(proof, bytes("I am rank 2")));
  CHECK_FALSE(key.proves(proof, bytes("I am rank 1 ")));
  CHECK_FALSE(other.proves(proof, bytes("I am rank 1")));
  CHECK_FALSE(none.proves(proof, bytes("I am rank 1")));
  CHECK_FALSE(key.proves({}, bytes("I am rank 1")));
  for (std::size_t i = 0; i < proof.size(); ++i) {
    TcpProof changed = proof;
    changed[i] ^= std::byte{1};
    CHECK_FALSE(key.proves(changed, bytes("I am rank 1")));
  }
}

TEST_CASE("no two nonces are alike") {
  std::set<runtime::TcpNonce> drawn;
  for (int i = 0; i < 1000; ++i) drawn.insert(runtime::random_nonce());
  CHECK(drawn.size() == 1000);
}

}  // namespace tcp_proof_test
