#include "runtime/serving/kv_cache.hpp"

#include <algorithm>

#include "costmodel/base/error.hpp"
#include "costmodel/base/units.hpp"

namespace runtime {

KvCache::KvCache(const CacheShape& shape, Arena& arena)
    : shape_(shape),
      arena_(arena),
      table_(static_cast<std::size_t>(shape.layers * shape.sequences * blocks_each()), nullptr) {}

std::int64_t KvCache::blocks_each() const {
  return costmodel::ceil_div(shape_.tokens, shape_.block_size);
}

void KvCache::hold(std::int64_t first, std::int64_t count, std::int64_t tokens) {
  SHARDPLAN_CHECK(tokens <= shape_.tokens && first + count <= shape_.sequences);
  const std::int64_t wanted = costmodel::ceil_div(tokens, shape_.block_size);
  for (std::int64_t row = 0; row < shape_.layers * count; ++row) {
    const std::int64_t sequence = row / count * shape_.sequences + first + row % count;
    float** own = table_.data() + sequence * blocks_each();
    for (std::int64_t i = 0; i < wanted; ++i) {
      if (own[i] != nullptr) continue;
      blocks_.push_back(arena_.take(MemoryKind::buffers,
                                    static_cast<std::size_t>(shape_.elements) * sizeof(float)));
      own[i] = blocks_.back().floats().data();
    }
  }
}

cpu::CachedKeys KvCache::of(std::int64_t layer, std::int64_t first, std::int64_t count,
                            std::int64_t before) const {
  const std::int64_t each = blocks_each();
  const auto all = std::span<float* const>(table_);
  return {.blocks = all.subspan(static_cast<std::size_t>((layer * shape_.sequences + first) * each),
                                static_cast<std::size_t>(count * each)),
          .blocks_each = each,
          .block_size = shape_.block_size,
          .before = before};
}

void KvCache::clear() {
  std::ranges::fill(table_, nullptr);
  blocks_.clear();
}

}  // namespace runtime
