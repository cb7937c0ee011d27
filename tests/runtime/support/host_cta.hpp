// A thread block of four warps with tensor cores, on the host: fragments are distributed over lanes
// as the PTX ISA specifies for mma.m16n8k16 and ldmatrix.
#pragma once

#include <array>
#include <bit>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "runtime/kernels/flash.hpp"
#include "tests/runtime/support/host_lanes.hpp"

class HostCta {
 public:
  struct Lane {
    std::array<std::uint32_t, 4> a{};
    std::array<std::uint32_t, 2> b{};
    const void* row = nullptr;  // of numbers of 16 bits
    float value = 0;
  };
  struct Block {
    Block() : all(runtime::kernels::flash_threads), lanes(runtime::kernels::flash_threads) {
      for (int warp = 0; warp < runtime::kernels::flash_threads / 32; ++warp)
        warps.emplace_back(32);
    }
    host_lanes::Meeting all;
    std::deque<host_lanes::Meeting> warps;
    std::vector<Lane> lanes;
  };
  HostCta(Block& block, host_lanes::Turn& turn, int thread)
      : block_(block), turn_(turn), thread_(thread) {}

  int thread() const { return thread_; }
  void sync() const { block_.all.wait(turn_); }

  template <class T>
  void mma(runtime::kernels::Sums& d, const runtime::kernels::Fragment& a, std::uint32_t b0,
           std::uint32_t b1) const {
    own().a = {a[0], a[1], a[2], a[3]};
    own().b = {b0, b1};
    meet();
    for (int i = 0; i < 4; ++i) {
      const int row = lane() / 4 + i / 2 * 8, col = lane() % 4 * 2 + i % 2;
      for (int k = 0; k < 16; ++k) {
        const auto reg = static_cast<std::size_t>(k / 8);
        const Lane& left = of_lane(row % 8 * 4 + k % 8 / 2);
        const Lane& right = of_lane(col * 4 + k % 8 / 2);
        d[i] += half<T>(left.a[static_cast<std::size_t>(row / 8) + 2 * reg], k % 2) *
                half<T>(right.b[reg], k % 2);
      }
    }
    meet();
  }
  void load(runtime::kernels::Fragment& to, const void* row) const {
    own().row = row;
    meet();
    for (int m = 0; m < 4; ++m) {
      const Lane& from = of_lane(m * 8 + lane() / 4);
      to[m] = packed(bits(from, lane() % 4 * 2), bits(from, lane() % 4 * 2 + 1));
    }
    meet();
  }
  void load_transposed(runtime::kernels::Fragment& to, const void* row) const {
    own().row = row;
    meet();
    for (int m = 0; m < 4; ++m) {
      const int first = m * 8 + lane() % 4 * 2;
      to[m] = packed(bits(of_lane(first), lane() / 4), bits(of_lane(first + 1), lane() / 4));
    }
    meet();
  }
  float exchange(float value, int apart) const {
    own().value = value;
    meet();
    const float other = of_lane(lane() ^ apart).value;
    meet();
    return other;
  }
  template <class T>
  std::uint32_t pack(float low, float high) const {
    return packed(T(low).bits(), T(high).bits());
  }

 private:
  static std::uint16_t bits(const Lane& of, int col) {
    std::uint16_t found = 0;
    std::memcpy(&found, static_cast<const std::byte*>(of.row) + sizeof found * col, sizeof found);
    return found;
  }
  static std::uint32_t packed(std::uint16_t low, std::uint16_t high) {
    return std::uint32_t{high} << 16U | low;
  }
  template <class T>
  static float half(std::uint32_t both, int which) {
    return std::bit_cast<T>(static_cast<std::uint16_t>(which == 0 ? both : both >> 16U));
  }
  int lane() const { return thread_ % 32; }
  Lane& of_lane(int other) const {
    return block_.lanes[static_cast<std::size_t>(thread_ / 32 * 32 + other)];
  }
  Lane& own() const { return of_lane(lane()); }
  void meet() const { block_.warps[static_cast<std::size_t>(thread_ / 32)].wait(turn_); }

  Block& block_;
  host_lanes::Turn& turn_;
  int thread_;
};

// All blocks of a launch, one after the other.
template <class Kernel>
void run_tiles(std::int64_t x, std::int64_t y, const Kernel& kernel) {
  HostCta::Block block;
  struct alignas(16) Room {
    std::array<typename Kernel::Element, Kernel::room> values;
  };
  const auto room = std::make_unique<Room>();
  host_lanes::run(runtime::kernels::flash_threads, [&](host_lanes::Turn& turn, int thread) {
    const HostCta cta(block, turn, thread);
    for (std::int64_t j = 0; j < y; ++j) {
      for (std::int64_t i = 0; i < x; ++i) {
        kernel(cta, i, j, room->values.data());
        cta.sync();
      }
    }
  });
}
