#include "runtime/cuda/triad.hpp"

#include <cmath>
#include <cstddef>
#include <memory>

#include "runtime/cuda/error_text.hpp"

namespace runtime::cuda {
namespace {

constexpr unsigned kThreadsPerBlock = 256;

__global__ void triad(float* a, const float* b, const float* c, float s, std::size_t count) {
  const std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) a[i] = __fmaf_rn(s, c[i], b[i]);
}

struct CudaFree {
  void operator()(float* memory) const { cudaFree(memory); }
};
using DeviceFloats = std::unique_ptr<float, CudaFree>;

cudaError_t allocate(DeviceFloats& floats, std::size_t bytes) {
  float* memory = nullptr;
  const cudaError_t status = cudaMalloc(&memory, bytes);
  floats.reset(memory);
  return status;
}

cudaError_t run(std::vector<float>& a, const std::vector<float>& b, const std::vector<float>& c,
                float s) {
  const std::size_t bytes = a.size() * sizeof(float);
  const auto blocks = static_cast<unsigned>((a.size() + kThreadsPerBlock - 1) / kThreadsPerBlock);
  DeviceFloats device_a, device_b, device_c;
  for (DeviceFloats* floats : {&device_a, &device_b, &device_c}) {
    if (const auto status = allocate(*floats, bytes); status != cudaSuccess) return status;
  }
  cudaMemcpy(device_b.get(), b.data(), bytes, cudaMemcpyHostToDevice);
  cudaMemcpy(device_c.get(), c.data(), bytes, cudaMemcpyHostToDevice);
  triad<<<blocks, kThreadsPerBlock>>>(device_a.get(), device_b.get(), device_c.get(), s, a.size());
  if (const auto status = cudaGetLastError(); status != cudaSuccess) return status;
  return cudaMemcpy(a.data(), device_a.get(), bytes, cudaMemcpyDeviceToHost);
}

}  // namespace

TriadResult triad_on_device(const std::vector<float>& b, const std::vector<float>& c, float s) {
  TriadResult result{.a = std::vector<float>(b.size())};
  if (b.size() != c.size()) return {.error = "the two inputs of a triad differ in length"};
  if (!b.empty()) result.error = error_text(run(result.a, b, c, s));
  return result;
}

std::vector<float> triad_on_host(const std::vector<float>& b, const std::vector<float>& c,
                                 float s) {
  std::vector<float> a(b.size());
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = std::fma(s, c[i], b[i]);
  return a;
}

}  // namespace runtime::cuda
