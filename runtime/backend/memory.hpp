// The interface to the memory that holds a rank's tensors, with the vector arithmetic that belongs
// to no operator; the engine never dereferences a tensor itself. Host memory is here, GPU memory in
// runtime/cuda/gpu_memory.hpp. Operations run in the order of the calls but may be asynchronous:
// only read(), write(), finite() and wait() wait for them.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "runtime/backend/number_format.hpp"
#include "runtime/cpu/optimizer.hpp"
#include "runtime/cpu/token_draw.hpp"

namespace runtime {

enum class Reduction { sum, max };

// The vectors of one size that an optimizer step updates. `rounded`, unless empty, receives the
// updated parameters in its own format.
struct AdamTensor {
  std::span<float> params;
  std::span<const float> grads;
  std::span<float> mean, square;
  Vector rounded;
};

class Memory {
 public:
  virtual ~Memory() = default;
  // Whether the host may read and write it directly.
  virtual bool host() const = 0;
  // Aligned to 64 bytes, not zeroed. Throws std::bad_alloc when out of memory.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void release(void* data) noexcept = 0;

  virtual void clear(void* data, std::size_t bytes) = 0;  // to zero bytes
  virtual void copy(const void* from, void* to, std::size_t bytes) = 0;
  virtual void read(const void* from, std::span<std::byte> host) = 0;
  // Copies to the device the bytes that `write` fills in; it gets an uninitialised host buffer.
  virtual void write(void* to, std::size_t bytes,
                     const std::function<void(std::span<std::byte>)>& write) = 0;

  // values = values + other, or max(values, other), element by element; both of one format.
  virtual void reduce(Reduction reduction, const Vector& other, const Vector& values) = 0;
  // Rounds to the format of `to`.
  virtual void round(std::span<const float> from, const Vector& to) = 0;
  // Adds the values in double to *total, which is in this memory; the order depends only on the
  // size.
  virtual void add_sum(std::span<const float> values, double* total) = 0;
  // ids[i] = draw.id(i); both have one size.
  virtual void draw_tokens(const cpu::TokenDraw& draw, std::span<std::int64_t> ids) = 0;
  // See cpu::adamw.
  virtual void adamw(std::span<float> params, std::span<const float> grads, std::span<float> mean,
                     std::span<float> square, const cpu::AdamW& how, std::int64_t step,
                     double gradient_scale) = 0;
  // Updates all tensors, which do not overlap.
  virtual void adamw(std::span<const AdamTensor> tensors, const cpu::AdamW& how, std::int64_t step,
                     double gradient_scale) {
    for (const AdamTensor& t : tensors) {
      adamw(t.params, t.grads, t.mean, t.square, how, step, gradient_scale);
      if (!t.rounded.empty()) round(t.params, t.rounded);
    }
  }
  // Whether all gradients are finite. Waits. By default for a memory whose operations the host
  // does.
  virtual bool finite(std::span<const AdamTensor> tensors) {
    double total = 0;  // a sum of floats cannot overflow a double
    for (const AdamTensor& t : tensors) add_sum(t.grads, &total);
    return std::isfinite(total);
  }
  // Waits for all earlier operations. Throws the errors since the last call.
  virtual void wait() = 0;

  void copy(std::span<const float> from, std::span<float> to) {
    copy(from.data(), to.data(), from.size_bytes());
  }
  void copy(const Vector& from, const Vector& to) { copy(from.data, to.data, from.bytes()); }
};

// Host memory. Thread-safe.
Memory& host_memory();

}  // namespace runtime
