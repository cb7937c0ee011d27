#include "calibrate/measure/random_block.hpp"

#include <algorithm>
#include <random>

namespace calibrate {

using runtime::Number;
using runtime::Vector;

namespace {

// Elements: copies begin at multiples of 128 bytes or more in every format.
constexpr std::size_t aligned = 64;

constexpr std::size_t rounded_up(std::size_t elements) {
  return (elements + aligned - 1) / aligned * aligned;
}

void draw(std::span<float> values) {
  constexpr float largest = 6;
  std::minstd_rand generator(1);
  std::normal_distribution<float> normal;
  for (float& value : values) value = std::clamp(normal(generator), -largest, largest);
}

}  // namespace

RandomBlock::RandomBlock(runtime::Memory& memory, std::size_t numbers)
    : memory_(memory), size_(std::max(rounded_up(numbers), aligned)) {
  Vector& floats = formats_[static_cast<std::size_t>(Number::f32)];
  floats = {memory.allocate(size_ * sizeof(float)), size_, Number::f32};
  memory.write(floats.data, floats.bytes(), [](std::span<std::byte> to) {
    draw(runtime::Vector(reinterpret_cast<float*>(to.data()), to.size() / sizeof(float)).floats());
  });
}

RandomBlock::~RandomBlock() {
  for (const Vector& block : formats_)
    if (!block.empty()) memory_.release(block.data);
}

const Vector& RandomBlock::in(Number number) {
  Vector& block = formats_[static_cast<std::size_t>(number)];
  if (block.empty()) {
    block = {memory_.allocate(size_ * bytes_of(number)), size_, number};
    memory_.round(formats_[static_cast<std::size_t>(Number::f32)].floats(), block);
  }
  return block;
}

void RandomBlock::fill(const Vector& vector) {
  constexpr std::size_t step = 9973 * aligned;  // a prime: vectors of one size begin elsewhere too
  const Vector& block = in(vector.number);
  std::size_t from = next_;
  for (std::size_t done = 0; done < vector.size;) {
    const std::size_t count = std::min(vector.size - done, size_ - from);
    memory_.copy(block.subspan(from, count), vector.subspan(done, count));
    done += count;
    from = 0;
  }
  next_ = (next_ + rounded_up(vector.size) + step) % size_;
}

}  // namespace calibrate
