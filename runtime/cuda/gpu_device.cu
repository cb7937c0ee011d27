#include "runtime/cuda/gpu_device.hpp"

#include <cmath>
#include <stdexcept>
#include <string>

#include "runtime/cpu/rotary.hpp"
#include "runtime/cuda/gpu_executor.cuh"
#include "runtime/kernels/kernel_device.hpp"

namespace runtime::cuda {

GpuExecutor::GpuExecutor(const GpuOptions& options)
    : memory_(options), products_(options.tf32, options.parts > 1 ? options.multiprocessors : 0) {}

GpuExecutor::~GpuExecutor() {
  for (const auto& [shape, table] : tables_) memory_.release(table);
  if (scratch_ != nullptr) memory_.release(scratch_);
  if (column_parts_ != nullptr) memory_.release(column_parts_);
}

// Allocating and waiting would invalidate a capture.
void GpuExecutor::expect_no_capture(const char* what) const {
  if (graphs_.recording())
    throw std::runtime_error(std::string(what) + " in the middle of a graph");
}

std::pair<const float*, const float*> GpuExecutor::rotary(std::int64_t s, std::int64_t head_dim) {
  const auto half = static_cast<std::size_t>(s * (head_dim / 2));
  if (const auto found = tables_.find({s, head_dim}); found != tables_.end())
    return {found->second, found->second + half};
  expect_no_capture("a rotary table is made");
  const std::size_t bytes = 2 * half * sizeof(float);
  auto* const table = static_cast<float*>(memory_.allocate(bytes));
  tables_[{s, head_dim}] = table;
  memory_.write(table, bytes, [&](std::span<std::byte> to) {
    auto* const cosine = reinterpret_cast<float*>(to.data());
    for (std::size_t i = 0; i < half; ++i) {
      const auto at = static_cast<std::int64_t>(i), pairs = head_dim / 2;
      const double angle = cpu::rotary_angle(at / pairs, at % pairs, head_dim);
      cosine[i] = static_cast<float>(std::cos(angle));
      cosine[i + half] = static_cast<float>(std::sin(angle));
    }
  });
  return {table, table + half};
}

float* GpuExecutor::scratch(Index floats) {
  if (floats > scratch_size_) {
    expect_no_capture("an operator wants more scratch memory");
    memory_.wait();
    graphs_.moved();
    if (scratch_ != nullptr) memory_.release(std::exchange(scratch_, nullptr));
    scratch_size_ = 0;
    scratch_ =
        static_cast<float*>(memory_.allocate(static_cast<std::size_t>(floats) * sizeof(float)));
    scratch_size_ = floats;
  }
  return scratch_;
}

Pair* GpuExecutor::column_parts() {
  if (column_parts_ == nullptr) {
    expect_no_capture("the room for sums of columns is made");
    column_parts_ = static_cast<Pair*>(memory_.allocate(most_column_parts * sizeof(Pair)));
  }
  return column_parts_;
}

namespace {

template <class T>
class GpuDevice : private GpuExecutor, public kernels::KernelDevice<GpuExecutor, T> {
 public:
  using Kernels = kernels::KernelDevice<GpuExecutor, T>;
  explicit GpuDevice(const GpuOptions& options)
      : GpuExecutor(options), Kernels(static_cast<GpuExecutor&>(*this), options.fp8) {}
  using Kernels::memory;
  Streams* streams() override { return &gpu_streams(); }
  GraphRecorder* graphs() override { return &gpu_graphs(); }
  std::vector<std::string> notes() const override { return products().notes(); }
};

}  // namespace

std::unique_ptr<runtime::Device> make_gpu_device(const GpuOptions& options) {
  return in_format(options.number, [&](auto zero) -> std::unique_ptr<runtime::Device> {
    return std::make_unique<GpuDevice<decltype(zero)>>(options);
  });
}

}  // namespace runtime::cuda
