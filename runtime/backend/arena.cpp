#include "runtime/backend/arena.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <new>
#include <numeric>
#include <utility>

namespace runtime {

Block::Block(Block&& other) noexcept
    : arena_(other.arena_),
      kind_(other.kind_),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

Block& Block::operator=(Block&& other) noexcept {
  if (this == &other) return *this;
  if (data_ != nullptr) arena_->give_back(kind_, data_, bytes_);
  arena_ = other.arena_;
  kind_ = other.kind_;
  data_ = std::exchange(other.data_, nullptr);
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

Block::~Block() {
  if (data_ != nullptr) arena_->give_back(kind_, data_, bytes_);
}

void Block::clear() {
  if (data_ != nullptr) arena_->memory_.clear(data_, bytes_);
}

namespace {

using Spare = std::map<std::size_t, std::vector<void*>>;

// Releases all free blocks; false when there were none.
bool release_all(Spare& spare, Memory& memory) {
  bool any = false;
  for (const auto& [bytes, list] : std::exchange(spare, {})) {
    for (void* data : list) memory.release(data);
    any = any || !list.empty();
  }
  return any;
}

// Allocates; when out of memory, releases the free blocks and tries again.
void* allocate(std::size_t bytes, Spare& spare, Memory& memory) {
  try {
    return memory.allocate(bytes);
  } catch (const std::exception&) {
    if (!release_all(spare, memory)) throw;
  }
  return memory.allocate(bytes);
}

}  // namespace

Arena::~Arena() { release_all(spare_, memory_); }

std::size_t Arena::total() const {
  return std::accumulate(used_.begin(), used_.end(), std::size_t{0});
}

Block Arena::take(MemoryKind kind, std::size_t bytes) {
  if (limit_ > 0 && total() + bytes > limit_) {
    throw OutOfMemory(fmt::format("out of memory: {} bytes of {} wanted, {} of {} bytes in use",
                                  bytes, memory_kind_names[index(kind)], total(), limit_));
  }
  void* data = nullptr;
  if (auto& list = spare_[bytes]; !list.empty()) {
    data = list.back();
    list.pop_back();
  } else {
    data = allocate(bytes, spare_, memory_);
  }
  used_[index(kind)] += bytes;
  peaks_[index(kind)] = std::max(peaks_[index(kind)], used_[index(kind)]);
  peak_ = std::max(peak_, total());
  return {this, kind, data, bytes};
}

void Arena::give_back(MemoryKind kind, void* data, std::size_t bytes) {
  used_[index(kind)] -= bytes;
  try {
    auto& list = spare_[bytes];
    const auto place = reuse_ == Reuse::latest
                           ? list.end()
                           : std::ranges::lower_bound(list, data, std::greater<void*>());
    list.insert(place, data);
  } catch (const std::bad_alloc&) {  // no room to remember it: destructors come here
    memory_.release(data);
  }
}

void Arena::restart_marks() {
  peaks_ = used_;
  peak_ = total();
}

}  // namespace runtime
