#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/backend/arena.hpp"
#include "runtime/cuda/error_text.hpp"
#include "runtime/cuda/gpu_memory.hpp"
#include "runtime/cuda/green_contexts.hpp"
#include "runtime/cuda/launch.cuh"
#include "runtime/kernels/elementwise.hpp"
#include "runtime/kernels/rows.hpp"

namespace runtime::cuda {

namespace {

std::string no_room(int device, std::size_t bytes) {
  std::size_t free = 0, total = 0;
  cudaMemGetInfo(&free, &total);
  return "out of memory: " + std::to_string(bytes) + " bytes wanted on GPU " +
         std::to_string(device) + ", " + std::to_string(free) + " of " + std::to_string(total) +
         " bytes free";
}

Index size_of(std::span<const float> values) { return static_cast<Index>(values.size()); }

template <class T>
void reduce_into(cudaStream_t stream, Reduction reduction, std::span<T> other,
                 std::span<T> values) {
  const auto n = static_cast<Index>(values.size());
  if (reduction == Reduction::sum)
    launch_elements(stream, n, kernels::AddTo<T>{other.data(), values.data()});
  else
    launch_elements(stream, n, kernels::LargerOf<T>{other.data(), values.data()});
}

void expect_equal(std::size_t a, std::size_t b) {
  if (a != b) throw std::invalid_argument("vectors of one operation differ in length");
}

// Freed memory stays in the process's pool for later allocations. False when there are no pools.
bool keep_pool(int device) {
  int supported = 0;
  check(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, device));
  if (supported == 0) return false;
  cudaMemPool_t pool = nullptr;
  check(cudaDeviceGetDefaultMemPool(&pool, device));
  std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &most));
  return true;
}

}  // namespace

GpuMemory::GpuMemory(const GpuOptions& options) : options_(options), device_(options.index) {
  check(cudaSetDevice(device_));
  stream_ = new_stream();
  // Nothing says that memory may be allocated in the order of a green context's stream.
  pools_ = options.parts == 1 && keep_pool(device_);
  check(cudaMalloc(&result_, sizeof(double)));
}

GpuMemory::~GpuMemory() {
  if (updated_list_ != nullptr) release(updated_list_);
  cudaSetDevice(device_);
  cudaStreamSynchronize(stream_);
  cudaFree(result_);
  cudaStreamDestroy(stream_);
}

cudaStream_t GpuMemory::stream() const {
  check(cudaSetDevice(device_));
  return stream_;
}

void GpuMemory::adamw(std::span<const AdamTensor> tensors, const cpu::AdamW& how, std::int64_t step,
                      double gradient_scale) {
  if (step < 1) throw std::invalid_argument("steps of AdamW count from 1");
  std::vector<kernels::AdamEntry> list;
  Index all = 0;
  for (const AdamTensor& t : tensors) {
    for (const std::size_t size : {t.grads.size(), t.mean.size(), t.square.size()})
      expect_equal(size, t.params.size());
    if (!t.rounded.empty()) expect_equal(t.rounded.size, t.params.size());
    if (t.params.empty()) continue;
    list.push_back({all, t.params.data(), t.grads.data(), t.mean.data(), t.square.data(),
                    t.rounded.data, t.rounded.number});
    all += size_of(t.params);
  }
  if (list.empty()) return;
  if (list != updated_) {
    if (updated_list_ != nullptr) release(std::exchange(updated_list_, nullptr));
    const auto bytes = std::as_bytes(std::span(list));
    updated_list_ = static_cast<kernels::AdamEntry*>(allocate(bytes.size()));
    write(updated_list_, bytes.size(),
          [&](std::span<std::byte> to) { std::ranges::copy(bytes, to.begin()); });
    updated_ = list;
  }
  launch_elements(stream(), all,
                  kernels::AdamSteps{cpu::adam_figures<float>(how, step, gradient_scale),
                                     static_cast<Index>(list.size()), updated_list_});
}

cudaStream_t GpuMemory::new_stream() const {
  check(cudaSetDevice(device_));
  if (options_.parts > 1)
    return new_stream_of_part(device_, options_.parts, options_.multiprocessors, options_.part);
  cudaStream_t made = nullptr;
  check(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking));
  return made;
}

void* GpuMemory::allocate(std::size_t bytes) {
  check(cudaSetDevice(device_));
  void* data = nullptr;
  const std::size_t wanted = bytes > 0 ? bytes : 1;
  const cudaError_t status =
      pools_ ? cudaMallocAsync(&data, wanted, stream_) : cudaMalloc(&data, wanted);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // reported below; clears the error for later calls
    throw OutOfMemory(no_room(device_, bytes));
  }
  check(status);
  return data;
}

void GpuMemory::release(void* data) noexcept {
  cudaSetDevice(device_);
  if (pools_)
    cudaFreeAsync(data, stream_);
  else
    cudaFree(data);
}

void GpuMemory::clear(void* data, std::size_t bytes) {
  if (bytes > 0) check(cudaMemsetAsync(data, 0, bytes, stream()));
}

void GpuMemory::copy(const void* from, void* to, std::size_t bytes) {
  if (from == to || bytes == 0) return;
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream()));
}

void GpuMemory::read(const void* from, std::span<std::byte> host) {
  if (!host.empty())
    check(cudaMemcpyAsync(host.data(), from, host.size(), cudaMemcpyDeviceToHost, stream()));
  wait();
}

void GpuMemory::write(void* to, std::size_t bytes,
                      const std::function<void(std::span<std::byte>)>& write) {
  if (bytes == 0) return;
  // Not zeroed: the threads that fill it take its pages.
  const auto staged = std::make_unique_for_overwrite<std::byte[]>(bytes);
  write({staged.get(), bytes});
  check(cudaMemcpyAsync(to, staged.get(), bytes, cudaMemcpyHostToDevice, stream()));
  wait();  // `staged` is destroyed
}

void GpuMemory::reduce(Reduction reduction, const Vector& other, const Vector& values) {
  expect_equal(other.bytes(), values.bytes());
  in_format(values.number, [&](auto zero) {
    using T = decltype(zero);
    reduce_into(stream(), reduction, other.as<T>(), values.as<T>());
  });
}

void GpuMemory::round(std::span<const float> from, const Vector& to) {
  expect_equal(from.size(), to.size);
  if (to.number == Number::f32) return copy(from.data(), to.data, to.bytes());
  in_format(to.number, [&](auto zero) {
    using T = decltype(zero);
    launch_elements(stream(), size_of(from), kernels::Rounded<T>{from.data(), to.as<T>().data()});
  });
}

void GpuMemory::add_sum(std::span<const float> values, double* total) {
  const Index n = size_of(values);
  launch_rows(stream(), 1, n, kernels::AddSumOf{n, values.data(), total});
}

void GpuMemory::draw_tokens(const cpu::TokenDraw& draw, std::span<std::int64_t> ids) {
  launch_elements(stream(), static_cast<Index>(ids.size()), kernels::TokenIds{draw, ids.data()});
}

bool GpuMemory::finite(std::span<const AdamTensor> tensors) {
  const std::lock_guard lock(looking_);
  clear(result_, sizeof(double));
  for (const AdamTensor& t : tensors)
    launch_elements(stream(), size_of(t.grads), kernels::FindInfinite{t.grads.data(), result_});
  double found = 0;
  read(result_, std::as_writable_bytes(std::span(&found, 1)));
  return found == 0;
}

void GpuMemory::adamw(std::span<float> params, std::span<const float> grads, std::span<float> mean,
                      std::span<float> square, const cpu::AdamW& how, std::int64_t step,
                      double gradient_scale) {
  if (step < 1) throw std::invalid_argument("steps of AdamW count from 1");
  for (const std::size_t size : {grads.size(), mean.size(), square.size()})
    expect_equal(size, params.size());
  launch_elements(stream(), size_of(params),
                  kernels::AdamStep{cpu::adam_figures<float>(how, step, gradient_scale),
                                    params.data(), grads.data(), mean.data(), square.data()});
}

void GpuMemory::wait_until(const std::function<bool()>& done) {
  constexpr int eager = 200;
  for (int tries = 0; !done(); ++tries) {
    if (look_) look_();
    if (tries >= eager) std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

void GpuMemory::wait() {
  if (!look_) return check(cudaStreamSynchronize(stream()));
  const cudaStream_t own = stream();
  wait_until([&] {
    const cudaError_t status = cudaStreamQuery(own);
    if (status != cudaErrorNotReady) check(status);
    return status == cudaSuccess;
  });
}

}  // namespace runtime::cuda
