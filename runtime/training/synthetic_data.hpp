// What the runtime trains on: synthetic samples, each a function of its number alone, so that every
// plan sees the same data.
#pragma once

#include <cstdint>
#include <span>

namespace runtime {

// Tokens of `sequences` samples from `first_sample` on, `sequence` of each; of labels, the ones
// that follow.
void fill_tokens(std::uint64_t seed, std::int64_t first_sample, std::int64_t sequences,
                 std::int64_t sequence, std::int64_t vocab, bool labels,
                 std::span<std::int64_t> ids);

}  // namespace runtime
