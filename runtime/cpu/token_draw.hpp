// The synthetic training data: a sample depends only on the seed and its number, so that every plan
// sees the same data, wherever it is drawn.
#pragma once

#include <cstdint>

#include "runtime/cpu/random.hpp"

namespace runtime::cpu {

// Text that can be learned: a sample counts upwards from a random token, modulo
// min(learnable_tokens, vocab), and one token in eight is random instead.
inline constexpr std::int64_t learnable_tokens = 256;
constexpr std::int64_t token(std::uint64_t seed, std::uint64_t sample, std::int64_t position,
                             std::int64_t vocab) {
  const auto range =
      static_cast<std::uint64_t>(vocab < learnable_tokens ? vocab : learnable_tokens);
  const auto place = static_cast<std::uint64_t>(position);
  const PhiloxCounter words = random_block(seed, sample, place + 1);
  if (words[0] % 8 == 0) return static_cast<std::int64_t>(words[1] % range);
  const std::uint64_t start = random_block(seed, sample, 0)[0];
  return static_cast<std::int64_t>((start + place) % range);
}

// The token ids [sequences, sequence] of a micro-batch's samples or, with `labels`, the ids of the
// tokens after them.
struct TokenDraw {
  std::uint64_t seed = 0;
  std::int64_t first_sample = 0, sequences = 1, sequence = 0, vocab = 0;
  bool labels = false;
  constexpr std::int64_t count() const { return sequences * sequence; }
  constexpr std::int64_t id(std::int64_t i) const {
    return token(seed, static_cast<std::uint64_t>(first_sample + i / sequence),
                 i % sequence + (labels ? 1 : 0), vocab);
  }
};

}  // namespace runtime::cpu
