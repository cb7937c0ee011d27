// What a caching allocator of device memory reserves for a sequence of allocations: PyTorch's
// (c10/cuda/CUDACachingAllocator.cpp). Memory comes from the driver in segments and is never given
// back; a freed block is cached, merged with free neighbours, and split for smaller requests of the
// same stream. With expandable segments (PYTORCH_ALLOC_CONF, expandable_segments:True) a stream's
// blocks lie in one segment, which grows at its end.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "costmodel/base/units.hpp"

namespace costmodel {

class CachingAllocator {
 public:
  explicit CachingAllocator(bool expandable = false) : expandable_(expandable) {}
  using Handle = std::int64_t;  // address of a block
  // Requests of 0 bytes take 512. Blocks of one stream are not reused by another.
  Handle allocate(Bytes bytes, int stream = 0);
  void free(Handle block);
  Bytes allocated() const { return Bytes(static_cast<double>(allocated_)); }
  Bytes reserved() const { return Bytes(static_cast<double>(reserved_)); }

 private:
  struct Block {
    std::int64_t size;
    std::int64_t segment;  // its address
    int pool;              // of its stream, small blocks or large ones
    bool used;
  };
  using Blocks = std::map<Handle, Block>;
  using Free = std::set<std::pair<std::int64_t, Handle>>;  // smallest first
  void cache(Blocks::iterator block);
  Free::iterator grow(int pool, std::int64_t size);
  void merge(Blocks::iterator left, Blocks::iterator right);

  Blocks blocks_;
  std::map<int, Free> free_;           // by pool
  std::map<int, std::int64_t> grown_;  // by pool: where its expandable segment ends
  bool expandable_;
  std::int64_t end_ = 0, allocated_ = 0, reserved_ = 0;
};

}  // namespace costmodel
