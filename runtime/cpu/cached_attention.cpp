#include "runtime/cpu/cached_attention.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "runtime/cpu/clones.hpp"
#include "runtime/cpu/lanes.hpp"
#include "runtime/cpu/rows.hpp"

namespace runtime::cpu {

namespace {

void expect_room(const HeadLayout& layout, const CachedKeys& cache, std::size_t qkv) {
  expect_size(qkv, layout.tokens() * layout.columns(), "qkv");
  const std::int64_t tokens = cache.before + layout.s;
  const bool table =
      static_cast<std::int64_t>(cache.blocks.size()) == layout.sequences * cache.blocks_each;
  if (!table || tokens > cache.blocks_each * cache.block_size || cache.before < 0)
    throw std::invalid_argument("the cache has no room for the tokens");
}

float* block_of(const CachedKeys& cache, std::int64_t sequence, std::int64_t position) {
  return cache
      .blocks[static_cast<std::size_t>(sequence * cache.blocks_each + position / cache.block_size)];
}

// scores[i] = q · keys[i].
RUNTIME_CLONES
void block_scores(std::int64_t tokens, std::int64_t d, const float* q, const float* keys,
                  float* scores) {
  for (std::int64_t i = 0; i < tokens; ++i) {
    const float* key = keys + i * d;
    scores[i] = lane_sum<float>(d, [&](std::int64_t at) { return q[at] * key[at]; });
  }
}

// out += sum of weights[i] · values[i].
RUNTIME_CLONES
void add_values(std::int64_t tokens, std::int64_t d, const float* weights, const float* values,
                float* out) {
  for (std::int64_t i = 0; i < tokens; ++i)
    for (std::int64_t at = 0; at < d; ++at) out[at] += weights[i] * values[i * d + at];
}

// Calls visit(block, first token, tokens) for the blocks of the first `keys` tokens.
template <class Visit>
void for_each_block(const CachedKeys& cache, std::int64_t sequence, std::int64_t keys,
                    Visit visit) {
  for (std::int64_t first = 0; first < keys; first += cache.block_size)
    visit(block_of(cache, sequence, first), first, std::min(cache.block_size, keys - first));
}

// One query head of one token.
void attend(const HeadLayout& layout, const CachedKeys& cache, std::int64_t sequence,
            std::int64_t head, const float* q, std::span<float> scores, float* out) {
  const std::int64_t d = layout.head_dim, size = cache.block_size * d;
  const std::int64_t kv = head / layout.share();
  const auto keys = static_cast<std::int64_t>(scores.size());
  for_each_block(cache, sequence, keys, [&](const float* block, auto first, auto tokens) {
    block_scores(tokens, d, q, block + kv * size, scores.data() + first);
  });
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(d)));
  const float most = row_max(keys, scores.data());
  const float sum = row_exp(keys, scale, scale * most, scores.data(), scores.data());
  std::fill_n(out, d, 0.0F);
  for_each_block(cache, sequence, keys, [&](const float* block, auto first, auto tokens) {
    add_values(tokens, d, scores.data() + first, block + (layout.kv_heads + kv) * size, out);
  });
  row_scale(d, 1 / sum, out);
}

}  // namespace

void append_to_cache(const HeadLayout& layout, const CachedKeys& cache, In<float> qkv) {
  expect_room(layout, cache, qkv.size());
  const std::int64_t d = layout.head_dim, both = 2 * layout.kv_heads;
  for (std::int64_t token = 0; token < layout.tokens(); ++token) {
    const std::int64_t sequence = token / layout.s, position = cache.before + token % layout.s;
    float* block = block_of(cache, sequence, position) + position % cache.block_size * d;
    const float* keys = qkv.data() + token * layout.columns() + layout.heads * d;
    for (std::int64_t head = 0; head < both; ++head)  // keys, then values
      std::copy_n(keys + head * d, d, block + head * cache.block_size * d);
  }
}

void cached_attention(const HeadLayout& layout, const CachedKeys& cache, In<float> qkv,
                      Out<float> context) {
  expect_room(layout, cache, qkv.size());
  expect_size(context.size(), layout.tokens() * layout.context_columns(), "context");
  std::vector<float> scores(static_cast<std::size_t>(cache.before + layout.s));
  const std::int64_t d = layout.head_dim;
  for (std::int64_t token = 0; token < layout.tokens(); ++token) {
    const auto keys = static_cast<std::size_t>(cache.before + token % layout.s + 1);
    for (std::int64_t head = 0; head < layout.heads; ++head) {
      attend(layout, cache, token / layout.s, head,
             qkv.data() + token * layout.columns() + head * d, std::span(scores).first(keys),
             context.data() + token * layout.context_columns() + head * d);
    }
  }
}

}  // namespace runtime::cpu
