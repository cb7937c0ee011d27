// Graphs on the host, with a GPU's rules: calls between begin() and end() are recorded with their
// addresses and numbers, and run when the graph is launched. Waiting or allocating during a
// recording is an error.
#pragma once

#include <functional>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

#include "runtime/devices/device_wrapper.hpp"

namespace host_graphs {

// Throws what must not happen while a graph is recorded.
class RecordedMemory : public runtime::Memory {
 public:
  using Note = std::function<void(std::function<void()>)>;
  // What is done within the memory is given to `note`, which does or keeps it.
  RecordedMemory(runtime::Memory& memory, const bool& recording, Note note)
      : memory_(memory), recording_(recording), note_(std::move(note)) {}

  using Memory::adamw;
  using Memory::copy;
  bool host() const override { return memory_.host(); }
  void* allocate(std::size_t bytes) override { return apart().allocate(bytes); }
  void release(void* data) noexcept override { memory_.release(data); }
  void clear(void* data, std::size_t bytes) override {
    note_([=, this] { memory_.clear(data, bytes); });
  }
  void copy(const void* from, void* to, std::size_t bytes) override {
    note_([=, this] { memory_.copy(from, to, bytes); });
  }
  void read(const void* from, std::span<std::byte> host) override { apart().read(from, host); }
  void write(void* to, std::size_t bytes,
             const std::function<void(std::span<std::byte>)>& write) override {
    apart().write(to, bytes, write);
  }
  void reduce(runtime::Reduction reduction, const runtime::Vector& other,
              const runtime::Vector& values) override {
    note_([=, this] { memory_.reduce(reduction, other, values); });
  }
  void round(std::span<const float> from, const runtime::Vector& to) override {
    note_([=, this] { memory_.round(from, to); });
  }
  void add_sum(std::span<const float> values, double* total) override {
    note_([=, this] { memory_.add_sum(values, total); });
  }
  void draw_tokens(const runtime::cpu::TokenDraw& draw, std::span<std::int64_t> ids) override {
    note_([=, this] { memory_.draw_tokens(draw, ids); });
  }
  void adamw(std::span<float> params, std::span<const float> grads, std::span<float> mean,
             std::span<float> square, const runtime::cpu::AdamW& how, std::int64_t step,
             double gradient_scale) override {
    note_([=, this] { memory_.adamw(params, grads, mean, square, how, step, gradient_scale); });
  }
  void wait() override { apart().wait(); }

 private:
  runtime::Memory& apart() {
    if (recording_) throw std::runtime_error("while a graph is recorded");
    return memory_;
  }

  runtime::Memory& memory_;
  const bool& recording_;
  const Note note_;
};

// Around another device, which computes when it is asked.
class RecordedDevice : public runtime::DeviceAround, public runtime::GraphRecorder {
 public:
  explicit RecordedDevice(runtime::Device& device)
      : DeviceAround(device),
        memory_(device.memory(), recording_, [this](auto work) { note(std::move(work)); }) {}

  runtime::Memory& memory() override { return memory_; }
  runtime::GraphRecorder* graphs() override { return this; }
  bool fuses_activations() const override { return inner().fuses_activations(); }
  void forward_fused(const runtime::OpCall& linear, const runtime::OpCall& activation) override {
    fused(&Device::forward_fused, linear, activation);
  }
  void input_gradient_fused(const runtime::OpCall& linear,
                            const runtime::OpCall& activation) override {
    fused(&Device::input_gradient_fused, linear, activation);
  }

  void begin() override {
    recording_ = true;
    noted_.clear();
  }
  Graph end() override {
    recording_ = false;
    graphs_[made_] = std::exchange(noted_, {});
    return made_++;
  }
  void cancel() noexcept override { recording_ = false; }
  void start(Graph graph) override {
    for (const auto& work : graphs_.at(graph)) work();
  }
  void forget(Graph graph) noexcept override { graphs_.erase(graph); }
  std::int64_t generation() const override { return 0; }

  std::size_t kept() const { return graphs_.size(); }

 private:
  void around(Work work, const runtime::OpCall& call) override {
    if (!recording_) return through(work, call);
    note([this, work, call, place = call.place] { through(work, at_place(call, place)); });
  }
  using FusedWork = void (Device::*)(const runtime::OpCall&, const runtime::OpCall&);
  void fused(FusedWork work, const runtime::OpCall& linear, const runtime::OpCall& activation) {
    if (!recording_) return (inner().*work)(linear, activation);
    note([this, work, linear, activation, place = linear.place, behind = activation.place] {
      (inner().*work)(at_place(linear, place), at_place(activation, behind));
    });
  }
  void note(std::function<void()> work) {
    if (!recording_) return work();
    noted_.push_back(std::move(work));
  }

  bool recording_ = false;
  RecordedMemory memory_;
  std::vector<std::function<void()>> noted_;
  std::map<Graph, std::vector<std::function<void()>>> graphs_;
  Graph made_ = 0;
};

}  // namespace host_graphs
