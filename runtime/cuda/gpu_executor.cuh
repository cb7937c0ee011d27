// The executor (kernels/kernel_device_class.hpp) that launches the kernels of runtime/kernels on
// one GPU.
#pragma once

#include <map>
#include <string_view>
#include <utility>

#include "runtime/cuda/check.hpp"
#include "runtime/cuda/cta.cuh"
#include "runtime/cuda/gpu_graphs.hpp"
#include "runtime/cuda/gpu_memory.hpp"
#include "runtime/cuda/gpu_streams.hpp"
#include "runtime/cuda/launch.cuh"
#include "runtime/cuda/products.hpp"
#include "runtime/kernels/fp8.hpp"

namespace runtime::cuda {

class GpuExecutor {
 public:
  explicit GpuExecutor(const GpuOptions& options);
  ~GpuExecutor();
  GpuExecutor(const GpuExecutor&) = delete;
  GpuExecutor& operator=(const GpuExecutor&) = delete;

  Memory& memory() { return memory_; }
  const Products& products() const { return products_; }
  void doing(std::string_view name) { now_doing(name); }
  GpuStreams& gpu_streams() { return streams_; }
  GpuGraphs& gpu_graphs() { return graphs_; }
  template <class Kernel>
  void elements(Index count, const Kernel& kernel) {
    launch_elements(memory_.stream(), count, kernel);
  }
  template <class Kernel>
  void rows(Index count, Index width, const Kernel& kernel) {
    launch_rows(memory_.stream(), count, width, kernel);
  }
  template <class Kernel>
  void columns(Index rows, Index cols, const Kernel& kernel) {
    launch_columns(memory_.stream(), rows, cols, kernel, column_parts());
  }
  template <class Kernel>
  void tiles(Index x, Index y, const Kernel& kernel) {
    launch_tiles(memory_.stream(), x, y, kernel);
  }
  template <class T, class Result>
  bool product(const cpu::Gemm& gemm, const cpu::Batch& batch, const T* a, const T* b,
               const kernels::Ending<T>& ending, Result* c) {
    const Products::Operands operands{.a = a,
                                      .b = b,
                                      .c = c,
                                      .a_type = data_type<T>,
                                      .b_type = data_type<T>,
                                      .c_type = data_type<Result>,
                                      .epilogue = ending.kind,
                                      .bias = ending.bias,
                                      .before = ending.before,
                                      .sums = ending.sums};
    return products_.multiply(memory_.stream(), gemm, batch, operands);
  }
  template <class A, class B, class T, class Result>
  bool fp8_product(const cpu::Gemm& gemm, const kernels::Codes<A>& a, const kernels::Codes<B>& b,
                   const kernels::Ending<T>& ending, Result* c) {
    const Products::Operands operands{.a = a.codes,
                                      .b = b.codes,
                                      .c = c,
                                      .a_type = data_type<A>,
                                      .b_type = data_type<B>,
                                      .c_type = data_type<Result>,
                                      .epilogue = ending.kind,
                                      .bias = ending.bias,
                                      .a_scale = a.scale,
                                      .b_scale = b.scale};
    return products_.multiply(memory_.stream(), gemm, cpu::Batch{1, 0, 0, 0}, operands);
  }
  std::pair<const float*, const float*> rotary(std::int64_t s, std::int64_t head_dim);
  float* scratch(Index floats);

 private:
  void expect_no_capture(const char* what) const;
  Pair* column_parts();

  GpuMemory memory_;  // first: it makes the GPU current
  GpuStreams streams_{memory_};
  GpuGraphs graphs_{memory_};
  Products products_;
  std::map<std::pair<std::int64_t, std::int64_t>, float*> tables_;  // cosines, then sines
  float* scratch_ = nullptr;
  Index scratch_size_ = 0;
  Pair* column_parts_ = nullptr;  // of columns(), which callers' scratch may feed
};

}  // namespace runtime::cuda
