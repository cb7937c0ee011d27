// The memory of one GPU, and one stream in which all that is asked for is done in order. Memory is
// taken and given back in that order too, where the GPU has pools, so that neither waits for other
// streams. Any thread may use it.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/backend/cuda_library.hpp"
#include "runtime/backend/memory.hpp"
#include "runtime/kernels/elementwise.hpp"

namespace runtime::cuda {

class GpuMemory : public Memory {
 public:
  // Throws std::runtime_error where there is no such GPU.
  explicit GpuMemory(const GpuOptions& options);
  ~GpuMemory() override;
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;

  // Makes this GPU the calling thread's; returns the stream.
  cudaStream_t stream() const;
  // One more, of the same GPU or of the same part of it; the caller's.
  cudaStream_t new_stream() const;
  // Called again and again while something is waited for; what it throws ends that.
  void watch(std::function<void()> look) { look_ = std::move(look); }
  void wait_until(const std::function<bool()>& done);

  bool host() const override { return false; }
  // Throws OutOfMemory, which says what is free.
  void* allocate(std::size_t bytes) override;
  void release(void* data) noexcept override;
  void clear(void* data, std::size_t bytes) override;
  using Memory::copy;
  void copy(const void* from, void* to, std::size_t bytes) override;
  void read(const void* from, std::span<std::byte> host) override;
  void write(void* to, std::size_t bytes,
             const std::function<void(std::span<std::byte>)>& write) override;
  void reduce(Reduction reduction, const Vector& other, const Vector& values) override;
  void round(std::span<const float> from, const Vector& to) override;
  double sum(std::span<const float> values) override;
  void adamw(std::span<float> params, std::span<const float> grads, std::span<float> mean,
             std::span<float> square, const cpu::AdamW& how, std::int64_t step,
             double gradient_scale) override;
  // In one launch. The list of tensors lies on the GPU, and is written where it has changed.
  void adamw(std::span<const AdamTensor> tensors, const cpu::AdamW& how, std::int64_t step,
             double gradient_scale) override;
  bool finite(std::span<const AdamTensor> tensors) override;
  void wait() override;

 private:
  const GpuOptions options_;
  const int device_;
  bool pools_ = false;
  std::function<void()> look_;
  cudaStream_t stream_ = nullptr;
  double* result_ = nullptr;  // of sum() and finite()
  std::mutex summing_;
  std::vector<kernels::AdamEntry> updated_;  // as in updated_list_
  kernels::AdamEntry* updated_list_ = nullptr;
};

}  // namespace runtime::cuda
