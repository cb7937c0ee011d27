// Counter-based random numbers: each depends only on its seed and position, not on the order of the
// calls. Integer and plain IEEE arithmetic only, so they are identical on every machine.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace runtime::cpu {

// Philox-4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3").
using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;
[[gnu::always_inline]] constexpr PhiloxCounter philox(PhiloxCounter counter, PhiloxKey key) {
#if defined(__GNUC__) && !defined(__CUDACC__)  // nvcc unrolls it by itself
#pragma GCC unroll 10
#endif
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t first = 0xD2511F53ULL * counter[0];
    const std::uint64_t second = 0xCD9E8D57ULL * counter[2];
    counter = {static_cast<std::uint32_t>(second >> 32U) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(second),
               static_cast<std::uint32_t>(first >> 32U) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(first)};
    key = {key[0] + 0x9E3779B9U, key[1] + 0xBB67AE85U};
  }
  return counter;
}

// Block `block` of a stream: its 32-bit words 4 · block ... 4 · block + 3.
[[gnu::always_inline]] constexpr PhiloxCounter random_block(std::uint64_t seed,
                                                            std::uint64_t stream,
                                                            std::uint64_t block) {
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32U); };
  return philox({low(block), high(block), low(stream), high(stream)}, {low(seed), high(seed)});
}

// Element `index` of a stream of normal numbers, mean 0, variance 1 (Box and Muller 1958).
float normal(std::uint64_t seed, std::uint64_t stream, std::uint64_t index);
// Elements first, first + 1, ... of the stream: the same bytes as one by one, several times faster.
void normals(std::uint64_t seed, std::uint64_t stream, std::uint64_t first,
             std::span<float> values);

}  // namespace runtime::cpu
