// The synthetic training data: a sample depends only on the seed and its number, so that every plan
// sees the same data.
#pragma once

#include <cstdint>
#include <span>

namespace runtime {

// Writes the token ids of `sequences` samples from `first_sample` on, `sequence` tokens each; with
// `labels`, the ids of the next tokens.
void fill_tokens(std::uint64_t seed, std::int64_t first_sample, std::int64_t sequences,
                 std::int64_t sequence, std::int64_t vocab, bool labels,
                 std::span<std::int64_t> ids);

}  // namespace runtime
