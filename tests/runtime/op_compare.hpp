// The operators of op_cases.hpp, run by a device and by the CPU on the same numbers.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "runtime/cpu_device.hpp"
#include "tests/runtime/op_cases.hpp"

namespace op_test {

// A case's buffers where a device's tensors live.
class Placed {
 public:
  Placed(const OpCase& one, runtime::Memory& memory) : case_(one), memory_(memory) {
    for (const Buffer& buffer : one.buffers) {
      places_.push_back(memory.allocate(buffer.bytes.size()));
      memory.write(places_.back(), buffer.bytes.size(), [&](std::span<std::byte> to) {
        std::memcpy(to.data(), buffer.bytes.data(), to.size());
      });
    }
  }
  ~Placed() {
    for (void* place : places_) memory_.release(place);
  }
  Placed(const Placed&) = delete;
  Placed& operator=(const Placed&) = delete;

  runtime::OpCall call() const {
    runtime::OpCall call{.node = case_.node, .place = case_.place};
    const auto fill = [&](auto& to, const std::vector<int>& ids) {
      for (std::size_t i = 0; i < ids.size(); ++i) to[i] = tensor(ids[i]);
    };
    fill(call.inputs, case_.inputs);
    fill(call.saved, case_.saved);
    fill(call.input_gradients, case_.input_gradients);
    call.output = tensor(case_.output);
    call.output_gradient = tensor(case_.output_gradient);
    call.matrix = tensor(case_.matrix).floats();
    call.bias = tensor(case_.bias).floats();
    call.matrix_gradient = tensor(case_.matrix_gradient).floats();
    call.bias_gradient = tensor(case_.bias_gradient).floats();
    call.table_layout = case_.table;
    call.accumulate[0] = case_.accumulate;
    return call;
  }
  std::vector<std::byte> bytes(std::size_t buffer) const {
    std::vector<std::byte> read(case_.buffers[buffer].bytes.size());
    memory_.read(places_[buffer], read);
    return read;
  }

 private:
  runtime::Tensor tensor(int id) const {
    if (id < 0) return {};
    const auto at = static_cast<std::size_t>(id);
    return {places_[at], case_.buffers[at].bytes.size()};
  }
  const OpCase& case_;
  runtime::Memory& memory_;
  std::vector<void*> places_;
};

inline void run_passes(runtime::Device& device, const runtime::OpCall& call) {
  if (std::holds_alternative<costmodel::CrossEntropy>(call.node.op)) {
    device.logits_maximum(call);
    device.logits_exponentials(call);
    device.logits_loss(call);
  } else {
    device.forward(call);
  }
  device.input_gradient(call);
  if (std::holds_alternative<costmodel::Linear>(call.node.op)) device.weight_gradient(call);
}

// The largest difference of two tensors of floats, relative to the largest of the second; NaN only
// where both are.
inline double relative_difference(const std::vector<std::byte>& a,
                                  const std::vector<std::byte>& b) {
  std::vector<float> x(a.size() / sizeof(float)), y(x.size());
  std::memcpy(x.data(), a.data(), a.size());
  std::memcpy(y.data(), b.data(), b.size());
  double worst = 0, largest = 1e-30;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i]) != std::isnan(y[i])) return INFINITY;
    if (std::isnan(y[i])) continue;
    worst = std::max(worst, std::abs(static_cast<double>(x[i]) - static_cast<double>(y[i])));
    if (std::abs(y[i]) < 1e30F) largest = std::max(largest, std::abs(static_cast<double>(y[i])));
  }
  return worst / largest;
}

// `tolerance`: of floats; all else is equal.
inline void compare_with_cpu(runtime::Device& device, double tolerance) {
  for (const OpCase& one : all_cases()) {
    CAPTURE(one.name);
    const std::size_t first = one.buffers.front().bytes.size();
    CAPTURE(first);
    runtime::CpuDevice cpu;
    const Placed own(one, device.memory()), reference(one, cpu.memory());
    run_passes(device, own.call());
    run_passes(cpu, reference.call());
    for (std::size_t b = 0; b < one.buffers.size(); ++b) {
      CAPTURE(b);
      if (one.buffers[b].floats)
        CHECK(relative_difference(own.bytes(b), reference.bytes(b)) <= tolerance);
      else
        CHECK(own.bytes(b) == reference.bytes(b));
    }
  }
}

}  // namespace op_test
