// A GPU that computes nothing: its memory has addresses and no contents, and its clock, which is
// the wall clock too, moves by what the cost model says of a data sheet's device. It notes what is
// asked of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "calibrate/measure/measurement.hpp"
#include "costmodel/config/search_path.hpp"
#include "costmodel/cost/device_time.hpp"
#include "costmodel/machine/device_reader.hpp"
#include "runtime/backend/device.hpp"

namespace simulated_gpu {

using costmodel::Pass;
using costmodel::Seconds;

inline costmodel::DeviceSpec data_sheet(const std::string& name) {
  const costmodel::ConfigPath path{{std::string(SHARDPLAN_SOURCE_DIR) + "/configs"}};
  const auto found = costmodel::resolve_config(path, "devices", costmodel::scalar_value(name));
  return costmodel::read_device(found.value, found.name);
}

struct Clock {
  static constexpr double launch = 5e-6;   // of one kernel, as the eager PyTorch ones of configs
  static constexpr double written = 2e12;  // bytes a second that copies write: half a H200's
  double now = 0;
  int waits = 0;
  bool noting = false;
  std::vector<std::string> notes;

  void work(const std::string& what, double seconds) {
    now += std::max(seconds, launch);
    note(what);
  }
  void note(const std::string& what) {
    if (noting) notes.push_back(what);
  }
};

class Memory : public runtime::Memory {
 public:
  struct Copy {
    const void* to;
    std::size_t bytes;
  };
  explicit Memory(Clock& clock) : clock_(clock) {}

  using runtime::Memory::adamw;
  using runtime::Memory::copy;
  bool host() const override { return false; }
  void* allocate(std::size_t bytes) override {
    void* const data = reinterpret_cast<void*>(next_);
    next_ += (bytes + 255) / 256 * 256;
    sizes_[data] = bytes;
    held += bytes;
    most_held = std::max(most_held, held);
    return data;
  }
  void release(void* data) noexcept override {
    held -= sizes_.at(data);
    sizes_.erase(data);
  }
  void clear(void*, std::size_t bytes) override { clock_.work("clear", over(bytes)); }
  void copy(const void*, void* to, std::size_t bytes) override {
    copied += static_cast<double>(bytes);
    if (clock_.noting) copies.push_back({to, bytes});
    clock_.work("copy", over(bytes));
  }
  void read(const void*, std::span<std::byte>) override { clock_.note("read"); }
  void write(void*, std::size_t bytes,
             const std::function<void(std::span<std::byte>)>& write) override {
    written.emplace_back(bytes);
    write(written.back());
    clock_.note("write");
  }
  void reduce(runtime::Reduction, const runtime::Vector& other, const runtime::Vector&) override {
    flushed += other.bytes();
    clock_.work("reduce", over(other.bytes()));
  }
  void round(std::span<const float>, const runtime::Vector& to) override {
    clock_.work("round", over(to.bytes()));
  }
  void add_sum(std::span<const float>, double*) override {}
  void draw_tokens(const runtime::cpu::TokenDraw&, std::span<std::int64_t>) override {}
  void adamw(std::span<float> params, std::span<const float>, std::span<float>, std::span<float>,
             const runtime::cpu::AdamW&, std::int64_t, double) override {
    clock_.work("adamw", over(params.size_bytes()) * 7 / 2);
  }
  void wait() override {
    ++clock_.waits;
    clock_.note("wait");
  }

  std::size_t held = 0, most_held = 0, flushed = 0;
  double copied = 0;
  std::vector<Copy> copies;                     // while notes are taken
  std::vector<std::vector<std::byte>> written;  // from the host

 private:
  static double over(std::size_t bytes) { return static_cast<double>(bytes) / Clock::written; }
  Clock& clock_;
  std::uintptr_t next_ = 4096;
  std::map<void*, std::size_t> sizes_;
};

class Streams : public runtime::Streams {
 public:
  static constexpr double pair = 1e-6;  // from one event to the next with nothing between them
  explicit Streams(Clock& clock) : clock_(clock) {}
  Stream make_stream() override { return 1; }
  Event make_event() override {
    times_.push_back(0);
    return static_cast<Event>(times_.size() - 1);
  }
  void record(Stream, Event event) override {
    clock_.now += pair;
    times_.at(static_cast<std::size_t>(event)) = clock_.now;
    clock_.note("record");
  }
  void wait(Stream, Event) override {}
  void copy(Stream, const void*, void*, std::size_t) override {}
  bool passed(Event) override { return true; }
  Seconds time(Event since, Event event) override {
    clock_.note("time");
    return Seconds(times_.at(static_cast<std::size_t>(event)) -
                   times_.at(static_cast<std::size_t>(since)));
  }
  void watch(std::function<void()>) override {}

 private:
  Clock& clock_;
  std::vector<double> times_;
};

class Device : public runtime::Device {
 public:
  // The clock may be shared between devices.
  Device(Clock& clock, costmodel::Precision precision = costmodel::Precision::bf16)
      : clock_(clock), precision_(precision), memory_(clock), streams_(clock) {}

  Memory& memory() override { return memory_; }
  Streams* streams() override { return &streams_; }
  void forward(const runtime::OpCall& call) override { run("forward", call, Pass::forward, 1); }
  void input_gradient(const runtime::OpCall& call) override {
    run("input gradient", call, Pass::input_gradient, 1);
  }
  void weight_gradient(const runtime::OpCall& call) override {
    run("weight gradient", call, Pass::weight_gradient, 1);
  }
  void logits_maximum(const runtime::OpCall& call) override {
    run("forward", call, Pass::forward, 1.0 / 3);
  }
  void logits_exponentials(const runtime::OpCall& call) override { logits_maximum(call); }
  void logits_loss(const runtime::OpCall& call) override { logits_maximum(call); }

  std::vector<runtime::Tensor> inputs;  // of the last call
  runtime::Tensor output_gradient;

 private:
  void run(const char* what, const runtime::OpCall& call, Pass pass, double share) {
    inputs.assign(call.inputs.begin(), call.inputs.end());
    output_gradient = call.output_gradient;
    clock_.work(what, share * costmodel::device_time(call.node.op, pass, spec_, precision_).value);
  }
  Clock& clock_;
  const costmodel::Precision precision_;
  const costmodel::DeviceSpec spec_ = data_sheet("h200-sxm-141gb");
  Memory memory_;
  Streams streams_;
};

inline calibrate::Clock wall_clock(const Clock& clock) {
  return [&clock] { return Seconds(clock.now); };
}

}  // namespace simulated_gpu
