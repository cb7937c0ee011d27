#include "runtime/backend/arena.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <map>
#include <new>
#include <string>
#include <vector>

#include "tests/runtime/support/far_memory.hpp"

namespace arena_test {

using runtime::Arena;
using runtime::Block;
using runtime::MemoryKind;

TEST_CASE("the arena counts what is in use and the most that ever was") {
  Arena arena;
  {
    const Block weights = arena.take(MemoryKind::weights, 100);
    CHECK(reinterpret_cast<std::uintptr_t>(weights.data()) % 64 == 0);
    {
      const Block a = arena.take(MemoryKind::activations, 40);
      const Block b = arena.take(MemoryKind::activations, 24);
      CHECK(arena.in_use(MemoryKind::activations) == 64);
    }
    const Block c = arena.take(MemoryKind::activations, 32);
    CHECK(arena.in_use(MemoryKind::activations) == 32);
  }
  CHECK(arena.in_use(MemoryKind::weights) == 0);
  CHECK(arena.peak(MemoryKind::activations) == 64);
  CHECK(arena.peak(MemoryKind::weights) == 100);
  CHECK(arena.peak() == 164);
  arena.restart_marks();
  CHECK(arena.peak() == 0);
}

TEST_CASE("a block moves, and gives its memory back once") {
  Arena arena;
  Block first = arena.take(MemoryKind::buffers, 16);
  first.floats()[3] = 7;
  Block second = std::move(first);
  CHECK(second.floats().size() == 4);
  CHECK(second.floats()[3] == 7);
  CHECK(arena.in_use(MemoryKind::buffers) == 16);
  second = arena.take(MemoryKind::buffers, 8);
  CHECK(arena.in_use(MemoryKind::buffers) == 8);
  second = Block();
  CHECK(arena.in_use(MemoryKind::buffers) == 0);
}

TEST_CASE("where the lowest address goes out first, the same taking has the same addresses") {
  const auto addresses = [](Arena& arena, bool first_back_last) {
    Block a = arena.take(MemoryKind::activations, 64), b = arena.take(MemoryKind::buffers, 64),
          c = arena.take(MemoryKind::activations, 64);
    const std::vector<void*> taken{a.data(), b.data(), c.data()};
    if (first_back_last) b = Block(), c = Block(), a = Block();
    return taken;
  };
  for (const auto reuse : {runtime::Reuse::latest, runtime::Reuse::lowest}) {
    Arena arena(0, runtime::host_memory(), reuse);
    addresses(arena, false);
    const auto first = addresses(arena, true);
    const auto second = addresses(arena, false);
    CHECK((first == second) == (reuse == runtime::Reuse::lowest));
  }
}

TEST_CASE("more than the limit is refused, and says what was wanted and what there is") {
  Arena arena(100);
  const Block held = arena.take(MemoryKind::weights, 60);
  std::string what;
  try {
    arena.take(MemoryKind::activations, 41);
  } catch (const runtime::OutOfMemory& fault) {
    what = fault.what();
  }
  CHECK(what.find("41 bytes of activations") != std::string::npos);
  CHECK(what.find("60 of 100 bytes in use") != std::string::npos);
  CHECK(arena.take(MemoryKind::activations, 40).bytes() == 40);
}

namespace {

// Has room for so many bytes.
class Scarce : public FarMemory {
 public:
  explicit Scarce(std::size_t bytes) : left_(bytes) {}
  void* allocate(std::size_t bytes) override {
    if (bytes > left_) throw std::bad_alloc();
    left_ -= bytes;
    void* const data = FarMemory::allocate(bytes);
    sizes_[data] = bytes;
    return data;
  }
  void release(void* data) noexcept override {
    left_ += sizes_[data];
    FarMemory::release(data);
  }

 private:
  std::size_t left_;
  std::map<void*, std::size_t> sizes_;
};

}  // namespace

TEST_CASE("where there is no room, blocks given back make some") {
  Scarce memory(100);
  Arena arena(0, memory);
  const Block held = arena.take(MemoryKind::weights, 30);
  arena.take(MemoryKind::activations, 60);
  CHECK(arena.take(MemoryKind::activations, 70).bytes() == 70);
  CHECK_THROWS_AS(arena.take(MemoryKind::activations, 71), std::bad_alloc);
  CHECK(arena.in_use(MemoryKind::weights) == 30);
  CHECK(arena.take(MemoryKind::activations, 70).bytes() == 70);
}

}  // namespace arena_test
