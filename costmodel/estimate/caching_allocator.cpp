#include "costmodel/estimate/caching_allocator.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace costmodel {

namespace {

// The constants of the allocator: requests are rounded to 512 bytes; up to 1 MiB share segments of
// 2 MiB, up to 10 MiB segments of 20 MiB, larger ones get their own, rounded to 2 MiB.
constexpr std::int64_t granule = 512;
constexpr std::int64_t mebi = std::int64_t{1} << 20;
constexpr std::int64_t most_small = mebi;

std::int64_t rounded(std::int64_t bytes, std::int64_t unit) {
  return std::max(unit, (bytes + unit - 1) / unit * unit);
}

std::int64_t segment_of(std::int64_t size) {
  if (size <= most_small) return 2 * mebi;
  return size < 10 * mebi ? 20 * mebi : rounded(size, 2 * mebi);
}

// What is left of a block becomes one of its own.
bool splits(std::int64_t left, bool small) { return small ? left >= granule : left > mebi; }

// Segments that grow lie far from each other.
constexpr std::int64_t far = std::int64_t{1} << 52;

}  // namespace

void CachingAllocator::cache(Blocks::iterator block) {
  block->second.used = false;
  free_[block->second.pool].emplace(block->second.size, block->first);
}

void CachingAllocator::merge(Blocks::iterator left, Blocks::iterator right) {
  free_[left->second.pool].erase({left->second.size, left->first});
  free_[right->second.pool].erase({right->second.size, right->first});
  left->second.size += right->second.size;
  blocks_.erase(right);
  cache(left);
}

// A free block of at least `size` at the end of the pool.
CachingAllocator::Free::iterator CachingAllocator::grow(int pool, std::int64_t size) {
  Free& free = free_[pool];
  if (!expandable_) {
    const std::int64_t segment = segment_of(size), at = end_;
    blocks_[at] = {segment, at, pool, false};
    end_ += segment;
    reserved_ += segment;
    return free.emplace(segment, at).first;
  }
  const std::int64_t begin = pool * far;
  std::int64_t& end = grown_.try_emplace(pool, begin).first->second;
  std::int64_t at = end, have = 0;
  if (const auto last = blocks_.lower_bound(end); last != blocks_.begin()) {
    const auto before = std::prev(last);
    if (before->second.segment == begin && !before->second.used) {
      at = before->first;
      have = before->second.size;
      free.erase({have, at});
    }
  }
  const std::int64_t more = rounded(size - have, size <= most_small ? 2 * mebi : 20 * mebi);
  end += more;
  reserved_ += more;
  blocks_[at] = {have + more, begin, pool, false};
  return free.emplace(have + more, at).first;
}

CachingAllocator::Handle CachingAllocator::allocate(Bytes bytes, int stream) {
  const std::int64_t size = rounded(static_cast<std::int64_t>(std::ceil(bytes.value)), granule);
  const bool small = size <= most_small;
  const int pool = 2 * stream + (small ? 1 : 0);
  Free& free = free_[pool];
  auto found = free.lower_bound({size, 0});
  if (found == free.end()) found = grow(pool, size);
  const auto block = blocks_.find(found->second);
  free.erase(found);
  const std::int64_t left = block->second.size - size;
  if (splits(left, small || expandable_)) {
    block->second.size = size;
    cache(blocks_.emplace(block->first + size, Block{left, block->second.segment, pool, false})
              .first);
  }
  block->second.used = true;
  allocated_ += block->second.size;
  return block->first;
}

void CachingAllocator::free(Handle handle) {
  const auto block = blocks_.find(handle);
  allocated_ -= block->second.size;
  cache(block);
  const auto joins = [](const Blocks::iterator& left, const Blocks::iterator& right) {
    return !left->second.used && !right->second.used &&
           left->second.segment == right->second.segment;
  };
  if (const auto next = std::next(block); next != blocks_.end() && joins(block, next))
    merge(block, next);
  if (block == blocks_.begin()) return;
  if (const auto before = std::prev(block); joins(before, block)) merge(before, block);
}

}  // namespace costmodel
