// The seam to where a rank's tensors live, and the arithmetic on whole vectors that belongs to no
// operator: the engine never reads or writes a tensor by itself. Host memory is here; a GPU's is in
// runtime/cuda. Operations are done in the order they are asked for, perhaps
// later than the call returns: only read(), sum(), finite() and wait() wait for them.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "runtime/backend/number_format.hpp"
#include "runtime/cpu/optimizer.hpp"

namespace runtime {

enum class Reduction { sum, max };

// What a step of the optimizer updates: vectors of one size. `rounded`, where not empty, gets the
// parameters in its format.
struct AdamTensor {
  std::span<float> params;
  std::span<const float> grads;
  std::span<float> mean, square;
  Vector rounded;
};

class Memory {
 public:
  virtual ~Memory() = default;
  // Whether the host may read and write it.
  virtual bool host() const = 0;
  // Aligned to 64 bytes, not cleared. Throws std::bad_alloc where there is none left.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void release(void* data) noexcept = 0;

  virtual void clear(void* data, std::size_t bytes) = 0;  // to zero bytes
  virtual void copy(const void* from, void* to, std::size_t bytes) = 0;
  virtual void read(const void* from, std::span<std::byte> host) = 0;
  // What `write` puts into the bytes it is given, which hold nothing before.
  virtual void write(void* to, std::size_t bytes,
                     const std::function<void(std::span<std::byte>)>& write) = 0;

  // values = values + other, or the larger, element by element; both of one format.
  virtual void reduce(Reduction reduction, const Vector& other, const Vector& values) = 0;
  // In the format of `to`.
  virtual void round(std::span<const float> from, const Vector& to) = 0;
  // In double, in an order that the size alone decides.
  virtual double sum(std::span<const float> values) = 0;
  // As cpu::adamw.
  virtual void adamw(std::span<float> params, std::span<const float> grads, std::span<float> mean,
                     std::span<float> square, const cpu::AdamW& how, std::int64_t step,
                     double gradient_scale) = 0;
  // Of all of them; they have nothing in common.
  virtual void adamw(std::span<const AdamTensor> tensors, const cpu::AdamW& how, std::int64_t step,
                     double gradient_scale) {
    for (const AdamTensor& t : tensors) {
      adamw(t.params, t.grads, t.mean, t.square, how, step, gradient_scale);
      if (!t.rounded.empty()) round(t.params, t.rounded);
    }
  }
  // Whether all of their gradients are. Waits.
  virtual bool finite(std::span<const AdamTensor> tensors) {
    for (const AdamTensor& t : tensors)  // in double the sum of floats has room
      if (!std::isfinite(sum(t.grads))) return false;
    return true;
  }
  // Returns when all that was asked for is done. Throws what went wrong since the last time.
  virtual void wait() = 0;

  void copy(std::span<const float> from, std::span<float> to) {
    copy(from.data(), to.data(), from.size_bytes());
  }
  void copy(const Vector& from, const Vector& to) { copy(from.data, to.data, from.bytes()); }
};

// The memory of this process. Any thread may use it.
Memory& host_memory();

}  // namespace runtime
