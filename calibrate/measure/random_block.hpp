// Random numbers in a device's memory, drawn once by the host; tensors are filled with copies of
// them made by the device itself, so that filling takes no longer than writing the tensors.
#pragma once

#include <array>
#include <cstddef>

#include "runtime/backend/memory.hpp"

namespace calibrate {

class RandomBlock {
 public:
  // 16 MB in fp32: it stays in a GPU's cache while it is copied. No power of two, so that the rows
  // of a matrix differ.
  static constexpr std::size_t usual = 4'000'000;

  // Draws so many numbers, rounded up to a multiple of 64, from the standard normal distribution:
  // none larger than 6 in magnitude. `memory` outlives this.
  explicit RandomBlock(runtime::Memory& memory, std::size_t numbers = usual);
  ~RandomBlock();
  RandomBlock(const RandomBlock&) = delete;
  RandomBlock& operator=(const RandomBlock&) = delete;

  // Fills the vector, from a place in the block that is another at each call.
  void fill(const runtime::Vector& vector);

 private:
  const runtime::Vector& in(runtime::Number number);

  runtime::Memory& memory_;
  std::size_t size_;
  std::size_t next_ = 0;                    // where the next vector begins
  std::array<runtime::Vector, 3> formats_;  // by Number; empty until needed, but fp32
};

}  // namespace calibrate
