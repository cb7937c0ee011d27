// Memory that the host must not touch, like a GPU's: its pages are protected, and a read or write
// by anything but its own operations (or code that runs while it is Open) ends the program. After
// two iterations or more of training it stays open: an engine that has not touched it by then never
// does, and protecting pages takes most of a test's time.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <map>
#include <mutex>
#include <new>
#include <vector>

#include "runtime/backend/memory.hpp"

class FarMemory : public runtime::Memory {
 public:
  FarMemory() {
    void* const pages = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) throw std::bad_alloc();
    begin_ = static_cast<std::byte*>(pages);
    if (unwatched() == 0) return;
    openings_ = watched;
    mprotect(begin_, size, PROT_READ | PROT_WRITE);
  }
  ~FarMemory() override { munmap(begin_, size); }
  FarMemory(const FarMemory&) = delete;
  FarMemory& operator=(const FarMemory&) = delete;

  // While one lives, new memory is open: for tests of something else.
  class Unwatched {
   public:
    explicit Unwatched(bool really = true) : count_(really ? 1 : 0) { unwatched() += count_; }
    ~Unwatched() { unwatched() -= count_; }
    Unwatched(const Unwatched&) = delete;
    Unwatched& operator=(const Unwatched&) = delete;

   private:
    int count_;
  };

  // Several may have it open.
  class Open {
   public:
    explicit Open(FarMemory& memory) : memory_(memory) { memory_.count(1); }
    ~Open() { memory_.count(-1); }
    Open(const Open&) = delete;
    Open& operator=(const Open&) = delete;

   private:
    FarMemory& memory_;
  };

  // How often the host has had to wait for its operations, in all memories so far: for a GPU's it
  // would.
  static std::atomic<std::int64_t>& waits() {
    static std::atomic<std::int64_t> count{0};
    return count;
  }

  bool host() const override { return false; }
  void* allocate(std::size_t bytes) override {
    const std::lock_guard lock(mutex_);
    const std::size_t rounded = (bytes + 63) / 64 * 64;
    auto& spare = spare_[rounded];
    std::byte* data = nullptr;
    if (!spare.empty()) {
      data = spare.back();
      spare.pop_back();
    } else {
      if (used_ + rounded > size) throw std::bad_alloc();
      data = begin_ + used_;
      used_ += rounded;
    }
    sizes_[data] = rounded;
    return data;
  }
  void release(void* data) noexcept override {
    const std::lock_guard lock(mutex_);
    auto* const bytes = static_cast<std::byte*>(data);
    spare_[sizes_[bytes]].push_back(bytes);
  }

  void clear(void* data, std::size_t bytes) override {
    host_do([&](auto& m) { m.clear(data, bytes); });
  }
  using Memory::adamw;
  using Memory::copy;
  void copy(const void* from, void* to, std::size_t bytes) override {
    host_do([&](auto& m) { m.copy(from, to, bytes); });
  }
  void read(const void* from, std::span<std::byte> host) override {
    ++waits();
    host_do([&](auto& m) { m.read(from, host); });
  }
  void write(void* to, std::size_t bytes,
             const std::function<void(std::span<std::byte>)>& write) override {
    ++waits();
    std::vector<std::byte> staged(bytes);
    write(staged);
    host_do([&](auto& m) { m.copy(staged.data(), to, bytes); });
  }
  void round(std::span<const float> from, const runtime::Vector& to) override {
    host_do([&](auto& m) { m.round(from, to); });
  }
  void reduce(runtime::Reduction reduction, const runtime::Vector& other,
              const runtime::Vector& values) override {
    host_do([&](auto& m) { m.reduce(reduction, other, values); });
  }
  void add_sum(std::span<const float> values, double* total) override {
    host_do([&](auto& m) { m.add_sum(values, total); });
  }
  void draw_tokens(const runtime::cpu::TokenDraw& draw, std::span<std::int64_t> ids) override {
    host_do([&](auto& m) { m.draw_tokens(draw, ids); });
  }
  void adamw(std::span<float> params, std::span<const float> grads, std::span<float> mean,
             std::span<float> square, const runtime::cpu::AdamW& how, std::int64_t step,
             double gradient_scale) override {
    host_do([&](auto& m) { m.adamw(params, grads, mean, square, how, step, gradient_scale); });
  }
  void wait() override {}

 private:
  static std::atomic<int>& unwatched() {
    static std::atomic<int> count{0};
    return count;
  }
  static constexpr std::size_t size = std::size_t{1} << 28U;
  static constexpr int watched = 13000;  // openings: two iterations of any test at least

  template <class Work>
  void host_do(Work work) {
    const Open open(*this);
    work(runtime::host_memory());
  }
  void count(int more) {
    const std::lock_guard lock(mutex_);
    const bool was = open_ > 0;
    open_ += more;
    if (was == (open_ > 0) || openings_ == watched) return;
    if (was) ++openings_;
    if (openings_ < watched) mprotect(begin_, size, was ? PROT_NONE : PROT_READ | PROT_WRITE);
    // The last time it is left as it is: open.
  }

  std::mutex mutex_;
  std::byte* begin_ = nullptr;
  std::size_t used_ = 0;
  int open_ = 0, openings_ = 0;
  std::map<std::size_t, std::vector<std::byte*>> spare_;
  std::map<std::byte*, std::size_t> sizes_;
};
