// Random figures by counter: each is a function of its seed and its place, whoever asks and in
// whatever order. Integer and plain IEEE arithmetic only, so they are the same on every machine.
#pragma once

#include <array>
#include <cstdint>

namespace runtime::cpu {

// Philox-4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3").
using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;
PhiloxCounter philox(PhiloxCounter counter, PhiloxKey key);

// Block `block` of a stream: its 32-bit words 4 · block ... 4 · block + 3.
PhiloxCounter random_block(std::uint64_t seed, std::uint64_t stream, std::uint64_t block);

// Element `index` of a stream of normal figures, mean 0 and variance 1 (Box and Muller 1958).
float normal(std::uint64_t seed, std::uint64_t stream, std::uint64_t index);

// Synthetic text to learn: a sample counts upwards from a random token, modulo learnable_tokens or
// vocab where that is less, and one token in eight is random instead.
inline constexpr std::int32_t learnable_tokens = 256;
std::int32_t token(std::uint64_t seed, std::uint64_t sample, std::int64_t position,
                   std::int32_t vocab);

}  // namespace runtime::cpu
