// Memory of one rank, counted: how much of each kind is in use, and the most that ever was. The
// high-water marks are what the memory model is held against.
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

// More than the rank may use: what() says what was asked for, what is in use and the limit.
class OutOfMemory : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Arena;

// A piece of memory, given back when it goes out of scope. Aligned to 64 bytes, not cleared.
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

// Which of the blocks that were given back goes out again: the one that came back last, which
// caches may still have, or the one at the lowest address, so that who takes and gives back the
// same again has the same addresses again.
enum class Reuse { latest, lowest };

// Used by one thread. Blocks given back are kept for the next of the same size; they do not count.
class Arena {
 public:
  // `limit` in bytes, 0: none. `memory` outlives this.
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
  std::size_t peak() const { return peak_; }  // of all kinds together
  // Marks start again from what is in use.
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
  std::map<std::size_t, std::vector<void*>> spare_;  // by size; the last goes out next
};

}  // namespace runtime
