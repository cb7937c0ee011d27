// Blocks of the cache: taken when a sequence grows into them, given back together.
#include "runtime/serving/kv_cache.hpp"

#include <doctest/doctest.h>

namespace kv_cache_test {

using namespace runtime;

TEST_CASE("sequences take whole blocks in every layer as they grow") {
  Arena arena;
  KvCache cache({.layers = 3, .sequences = 4, .tokens = 10, .block_size = 4, .elements = 8}, arena);
  const auto blocks = [&] { return arena.in_use(MemoryKind::buffers) / (8 * sizeof(float)); };
  CHECK(blocks() == 0);
  cache.hold(1, 2, 4);
  CHECK(blocks() == 2 * 3);
  cache.hold(1, 2, 4);  // has them
  CHECK(blocks() == 2 * 3);
  cache.hold(2, 1, 5);
  CHECK(blocks() == 2 * 3 + 3);
  const cpu::CachedKeys keys = cache.of(2, 1, 2, 4);
  CHECK(keys.blocks.size() == 2 * 3);
  CHECK(keys.before == 4);
  CHECK(keys.blocks[0] != nullptr);
  CHECK(keys.blocks[1] == nullptr);
  CHECK(keys.blocks[4] != nullptr);
  CHECK(cache.of(0, 1, 1, 0).blocks[0] != keys.blocks[0]);
  cache.clear();
  CHECK(blocks() == 0);
  CHECK(arena.peak(MemoryKind::buffers) == 9 * 8 * sizeof(float));
}

}  // namespace kv_cache_test
