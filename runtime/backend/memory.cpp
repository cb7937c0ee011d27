#include "runtime/backend/memory.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <numeric>

namespace runtime {

namespace {

constexpr std::align_val_t alignment{64};

template <class T>
void reduce_into(Reduction reduction, std::span<const T> other, std::span<T> values) {
  if (reduction == Reduction::sum) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = T(values[i] + other[i]);
  } else {
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = values[i] < other[i] ? other[i] : values[i];
  }
}

class HostMemory : public Memory {
 public:
  using Memory::adamw;
  using Memory::copy;
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

  void reduce(Reduction reduction, const Vector& other, const Vector& values) override {
    in_format(values.number, [&](auto zero) {
      using T = decltype(zero);
      reduce_into<T>(reduction, other.as<T>(), values.as<T>());
    });
  }
  void round(std::span<const float> from, const Vector& to) override {
    if (to.number == Number::f32) return copy(from, to.floats());
    in_format(to.number, [&](auto zero) {
      using T = decltype(zero);
      const auto narrow = to.as<T>();
      for (std::size_t i = 0; i < from.size(); ++i) narrow[i] = T(from[i]);
    });
  }
  void add_sum(std::span<const float> values, double* total) override {
    *total += std::accumulate(values.begin(), values.end(), 0.0);
  }
  void draw_tokens(const cpu::TokenDraw& draw, std::span<std::int64_t> ids) override {
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = draw.id(static_cast<std::int64_t>(i));
  }
  void adamw(std::span<float> params, std::span<const float> grads, std::span<float> mean,
             std::span<float> square, const cpu::AdamW& how, std::int64_t step,
             double gradient_scale) override {
    cpu::adamw(params, grads, mean, square, how, step, gradient_scale);
  }
  void wait() override {}
};

}  // namespace

Memory& host_memory() {
  static HostMemory memory;
  return memory;
}

}  // namespace runtime
