// The CPU as a device: runs operators with the functions of runtime/cpu on the calling thread.
#pragma once

#include <array>
#include <map>

#include "runtime/backend/device.hpp"
#include "runtime/cpu/rotary.hpp"

namespace runtime {

class CpuDevice : public Device {
 public:
  Memory& memory() override { return host_memory(); }
  void forward(const OpCall& call) override;
  void cached_attention(const OpCall& call, const cpu::CachedKeys& cache) override;
  void input_gradient(const OpCall& call) override;
  void weight_gradient(const OpCall& call) override;
  void logits_maximum(const OpCall& call) override;
  void logits_exponentials(const OpCall& call) override;
  void logits_loss(const OpCall& call) override;

 private:
  const cpu::RotaryTable<float>& rotary(const Place& place);
  std::map<std::array<std::int64_t, 3>, cpu::RotaryTable<float>> rotary_;
};

}  // namespace runtime
