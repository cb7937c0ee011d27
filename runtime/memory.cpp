#include "runtime/memory.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <numeric>

namespace runtime {

namespace {

constexpr std::align_val_t alignment{64};

class HostMemory : public Memory {
 public:
  bool host() const override { return true; }
  void* allocate(std::size_t bytes) override {
    return ::operator new(std::max<std::size_t>(bytes, 1), alignment);
  }
  void release(void* data) noexcept override { ::operator delete(data, alignment); }

  void clear(void* data, std::size_t bytes) override {
    if (bytes > 0) std::memset(data, 0, bytes);
  }
  void copy(const void* from, void* to, std::size_t bytes) override {
    if (from != to && bytes > 0) std::memmove(to, from, bytes);
  }
  void read(const void* from, std::span<std::byte> host) override {
    copy(from, host.data(), host.size());
  }
  void write(void* to, std::size_t bytes,
             const std::function<void(std::span<std::byte>)>& write) override {
    write({static_cast<std::byte*>(to), bytes});
  }

  void reduce(Reduction reduction, std::span<const float> other, std::span<float> values) override {
    if (reduction == Reduction::sum) {
      for (std::size_t i = 0; i < values.size(); ++i) values[i] += other[i];
    } else {
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::max(values[i], other[i]);
    }
  }
  double sum(std::span<const float> values) override {
    return std::accumulate(values.begin(), values.end(), 0.0);
  }
  void adamw(std::span<float> params, std::span<const float> grads, std::span<float> mean,
             std::span<float> square, const cpu::AdamW& how, std::int64_t step) override {
    cpu::adamw(params, grads, mean, square, how, step);
  }
  void wait() override {}
};

}  // namespace

Memory& host_memory() {
  static HostMemory memory;
  return memory;
}

}  // namespace runtime
