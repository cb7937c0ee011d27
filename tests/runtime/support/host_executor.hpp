// Runs the kernels of runtime/kernels on the host, on memory that only they may touch.
#pragma once

#include <algorithm>
#include <array>
#include <barrier>
#include <map>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/cpu/gemm.hpp"
#include "runtime/cpu/rotary.hpp"
#include "runtime/kernels/kernel_device.hpp"
#include "runtime/kernels/product.hpp"
#include "tests/runtime/support/far_memory.hpp"
#include "tests/runtime/support/host_cta.hpp"

// A team of threads, as a block of a GPU's is one.
class ThreadTeam {
 public:
  struct Shared {
    explicit Shared(int size) : barrier(size), values(static_cast<std::size_t>(size)) {}
    std::barrier<> barrier;
    std::vector<double> values;
  };
  ThreadTeam(Shared& shared, int rank) : shared_(shared), rank_(rank) {}
  int rank() const { return rank_; }
  int size() const { return static_cast<int>(shared_.values.size()); }
  template <class T>
  T sum(T value) const {
    T all = 0;
    each(value, [&](double other) { all += static_cast<T>(other); });
    return all;
  }
  float max(float value) const {
    float most = value;
    each(value, [&](double other) { most = std::max(most, static_cast<float>(other)); });
    return most;
  }

 private:
  template <class T, class Visit>
  void each(T value, Visit visit) const {
    shared_.values[static_cast<std::size_t>(rank_)] = static_cast<double>(value);
    shared_.barrier.arrive_and_wait();
    for (const double other : shared_.values) visit(other);
    shared_.barrier.arrive_and_wait();
  }
  Shared& shared_;
  int rank_;
};

// kernel(team, row) of all rows by a team of so many threads.
template <class Kernel>
void run_team(int size, std::int64_t rows, const Kernel& kernel) {
  ThreadTeam::Shared shared(size);
  std::vector<std::jthread> members;
  for (int rank = 0; rank < size; ++rank) {
    members.emplace_back([&, rank] {
      for (std::int64_t row = 0; row < rows; ++row) kernel(ThreadTeam(shared, rank), row);
    });
  }
}

class HostExecutor {
 public:
  runtime::Memory& memory() { return memory_; }
  void doing(std::string_view) {}

  template <class Kernel>
  void elements(std::int64_t count, const Kernel& kernel) {
    const FarMemory::Open open(memory_);
    for (std::int64_t i = 0; i < count; ++i) kernel(i);
  }
  template <class Kernel>
  void rows(std::int64_t count, std::int64_t, const Kernel& kernel) {
    const FarMemory::Open open(memory_);
    for (std::int64_t row = 0; row < count; ++row) kernel(runtime::kernels::Alone{}, row);
  }
  template <class Kernel>
  void columns(std::int64_t rows, std::int64_t cols, const Kernel& kernel) {
    const FarMemory::Open open(memory_);
    for (std::int64_t col = 0; col < cols; ++col) {
      runtime::kernels::Pair sum;
      for (std::int64_t row = 0; row < rows; ++row) sum = sum + kernel.term(row, col);
      kernel.add(col, sum);
    }
  }

  template <class Kernel>
  void tiles(std::int64_t x, std::int64_t y, const Kernel& kernel) {
    const FarMemory::Open open(memory_);
    run_tiles(x, y, kernel);
  }

  // As cuBLASLt: multiplied, added and ended in float, rounded once.
  template <class T, class Result>
  bool product(const runtime::cpu::Gemm& g, const runtime::cpu::Batch& batch, const T* a,
               const T* b, const runtime::kernels::Ending<T>& ending, Result* c) {
    if (!has_products || (ending.kind > runtime::kernels::Epilogue::bias && !has_endings))
      return false;
    const FarMemory::Open open(memory_);
    const auto p = runtime::kernels::column_major(g);
    for (std::int64_t i = 0; i < batch.count; ++i) {
      const auto left =
          dense(a + i * batch.stride_a, p.second_cols(), p.second_rows(), p.second_stride);
      const auto right =
          dense(b + i * batch.stride_b, p.first_cols(), p.first_rows(), p.first_stride);
      std::vector<float> sums(static_cast<std::size_t>(g.m * g.n));
      runtime::cpu::Gemm packed = g;
      packed.lda = packed.ldb = packed.ldc = 0;
      packed.beta = 0;
      runtime::cpu::gemm(packed, left, right, sums);
      for (std::int64_t row = 0; row < g.m; ++row) {
        for (std::int64_t col = 0; col < g.n; ++col) {
          Result& to = c[i * batch.stride_c + row * p.result_stride + col];
          float sum = sums[static_cast<std::size_t>(row * g.n + col)];
          if (g.beta != 0) sum += static_cast<float>(g.beta) * float(to);
          if (ending.bias != nullptr) sum += float(ending.bias[col]);
          to = Result(ended(ending, row * g.n + col, sum));
        }
      }
      for (std::int64_t col = 0; ending.sums != nullptr && col < g.n; ++col) {
        ending.sums[col] = 0;
        for (std::int64_t row = 0; row < g.k; ++row)
          ending.sums[col] += right[static_cast<std::size_t>(row * g.n + col)];
      }
    }
    ended_[static_cast<std::size_t>(ending.kind)] += 1;
    return true;
  }
  // Of codes, each with its tensor's scale taken back.
  template <class A, class B, class T, class Result>
  bool fp8_product(const runtime::cpu::Gemm& g, const runtime::kernels::Codes<A>& a,
                   const runtime::kernels::Codes<B>& b, const runtime::kernels::Ending<T>& ending,
                   Result* c) {
    const FarMemory::Open open(memory_);
    // As cublasLtMatmul asks.
    if (!runtime::kernels::on_16_bytes(a.scale) || !runtime::kernels::on_16_bytes(b.scale))
      return false;
    std::vector<float> left, right, sums(static_cast<std::size_t>(g.m * g.n));
    for (std::int64_t i = 0; i < g.m * g.k; ++i) left.push_back(float(a.codes[i]));
    for (std::int64_t i = 0; i < g.n * g.k; ++i) right.push_back(float(b.codes[i]));
    runtime::cpu::gemm({.m = g.m, .n = g.n, .k = g.k, .transpose_b = true}, left, right, sums);
    for (std::int64_t i = 0; i < g.m * g.n; ++i) {
      float sum = sums[static_cast<std::size_t>(i)] * *a.scale * *b.scale;
      if (g.beta != 0) sum += static_cast<float>(g.beta) * float(c[i]);
      if (ending.bias != nullptr) sum += float(ending.bias[i % g.n]);
      c[i] = Result(sum);
    }
    ++fp8_products_;
    return true;
  }
  int fp8_products() const { return fp8_products_; }
  int products_ended(runtime::kernels::Epilogue kind) const {
    return ended_[static_cast<std::size_t>(kind)];
  }
  bool has_endings = true;   // but none and bias
  bool has_products = true;  // in any format but fp8

  std::pair<const float*, const float*> rotary(std::int64_t s, std::int64_t head_dim) {
    auto& table = tables_.try_emplace({s, head_dim}, s, head_dim).first->second;
    return {table.cosine.data(), table.sine.data()};
  }
  float* scratch(std::int64_t floats) {
    if (scratch_ != nullptr) memory_.release(scratch_);
    scratch_ = memory_.allocate(static_cast<std::size_t>(floats) * sizeof(float));
    return static_cast<float*>(scratch_);
  }

 private:
  template <class T>
  static float ended(const runtime::kernels::Ending<T>& ending, std::int64_t at, float sum) {
    using runtime::kernels::Epilogue;
    if (ending.kind == Epilogue::gelu_gradient)
      return sum * runtime::kernels::gelu_derivative(ending.before[at]);
    if (ending.kind != Epilogue::gelu) return sum;
    ending.before[at] = T(sum);
    return runtime::kernels::gelu(sum);
  }
  template <class T>
  static std::vector<float> dense(const T* from, std::int64_t rows, std::int64_t cols,
                                  std::int64_t stride) {
    std::vector<float> packed;
    for (std::int64_t row = 0; row < rows; ++row)
      packed.insert(packed.end(), from + row * stride, from + row * stride + cols);
    return packed;
  }

  FarMemory memory_;
  std::map<std::pair<std::int64_t, std::int64_t>, runtime::cpu::RotaryTable<float>> tables_;
  void* scratch_ = nullptr;
  std::array<int, 5> ended_{};  // by Epilogue
  int fp8_products_ = 0;
};

// A rank's device of kernels, with all it needs.
template <class T>
class KernelDeviceOnHost : private HostExecutor,
                           public runtime::kernels::KernelDevice<HostExecutor, T> {
 public:
  using Kernels = runtime::kernels::KernelDevice<HostExecutor, T>;
  explicit KernelDeviceOnHost(bool fp8 = false) : Kernels(static_cast<HostExecutor&>(*this), fp8) {}
  using HostExecutor::fp8_products;
  using HostExecutor::has_endings;
  using HostExecutor::has_products;
  using HostExecutor::products_ended;
  using Kernels::memory;
};
using HostKernelDevice = KernelDeviceOnHost<float>;
