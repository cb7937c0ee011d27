// The memory of one GPU and the compute stream, which runs all operations in order. Where the GPU
// has memory pools, allocation and release are stream-ordered, so that they wait for no other
// stream. Thread-safe.
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
  // Throws std::runtime_error when there is no such GPU.
  explicit GpuMemory(const GpuOptions& options);
  ~GpuMemory() override;
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;

  // Makes this GPU current for the calling thread and returns the compute stream.
  cudaStream_t stream() const;
  // Another stream on the same GPU or the same part of it, owned by the caller.
  cudaStream_t new_stream() const;
  // `look` is polled while something waits; an exception it throws ends the wait.
  void watch(std::function<void()> look) { look_ = std::move(look); }
  void wait_until(const std::function<bool()>& done);

  bool host() const override { return false; }
  // Throws OutOfMemory, which reports the free bytes.
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
  void add_sum(std::span<const float> values, double* total) override;
  void draw_tokens(const cpu::TokenDraw& draw, std::span<std::int64_t> ids) override;
  void adamw(std::span<float> params, std::span<const float> grads, std::span<float> mean,
             std::span<float> square, const cpu::AdamW& how, std::int64_t step,
             double gradient_scale) override;
  // In one launch. The list of tensors is kept on the GPU and uploaded only when it has changed.
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
  double* result_ = nullptr;                 // on the GPU, of finite()
  std::mutex looking_;                       // guards *result_
  std::vector<kernels::AdamEntry> updated_;  // host copy of updated_list_
  kernels::AdamEntry* updated_list_ = nullptr;
};

}  // namespace runtime::cuda
