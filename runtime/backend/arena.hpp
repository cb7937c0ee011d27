// The memory allocator of one rank. It counts the bytes in use per kind of memory and the
// high-water marks, which the tests compare with the predicted memory.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "runtime/backend/memory.hpp"

namespace runtime {

enum class MemoryKind { weights, gradients, optimizer, activations, buffers };
inline constexpr std::array<std::string_view, 5> memory_kind_names{
    "weights", "gradients", "optimizer", "activations", "buffers"};

// Thrown when an allocation would exceed the rank's limit. what() reports the request, the bytes in
// use and the limit.
class OutOfMemory : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Arena;

// One allocation; its destructor returns it to the arena. Aligned to 64 bytes, not zeroed.
class Block {
 public:
  Block() = default;
  Block(Block&& other) noexcept;
  Block& operator=(Block&& other) noexcept;
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block();

  explicit operator bool() const { return data_ != nullptr; }
  std::size_t bytes() const { return bytes_; }
  std::span<float> floats() const { return {static_cast<float*>(data_), bytes_ / sizeof(float)}; }
  void* data() const { return data_; }
  void clear();  // to zero bytes

 private:
  friend class Arena;
  Block(Arena* arena, MemoryKind kind, void* data, std::size_t bytes)
      : arena_(arena), kind_(kind), data_(data), bytes_(bytes) {}
  Arena* arena_ = nullptr;
  MemoryKind kind_ = MemoryKind::activations;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// Which free block take() reuses: the one freed last, which caches may still hold, or the one at
// the lowest address, so that an identical sequence of allocations gets identical addresses (CUDA
// graphs need that).
enum class Reuse { latest, lowest };

// Not thread-safe. Freed blocks are cached for the next allocation of the same size; cached bytes
// do not count as in use.
class Arena {
 public:
  // `limit` in bytes; 0: unlimited. `memory` outlives this.
  explicit Arena(std::size_t limit = 0, Memory& memory = host_memory(), Reuse reuse = Reuse::latest)
      : limit_(limit), memory_(memory), reuse_(reuse) {}
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  Memory& memory() const { return memory_; }
  // Throws OutOfMemory.
  Block take(MemoryKind kind, std::size_t bytes);
  std::size_t in_use(MemoryKind kind) const { return used_[index(kind)]; }
  std::size_t peak(MemoryKind kind) const { return peaks_[index(kind)]; }
  std::size_t peak() const { return peak_; }  // over all kinds
  // Resets the high-water marks to the bytes in use.
  void restart_marks();

 private:
  friend class Block;
  static std::size_t index(MemoryKind kind) { return static_cast<std::size_t>(kind); }
  void give_back(MemoryKind kind, void* data, std::size_t bytes);
  std::size_t total() const;

  std::size_t limit_;
  Memory& memory_;
  const Reuse reuse_;
  std::array<std::size_t, memory_kind_names.size()> used_{}, peaks_{};
  std::size_t peak_ = 0;
  std::map<std::size_t, std::vector<void*>> spare_;  // free blocks by size, reused last first
};

}  // namespace runtime
