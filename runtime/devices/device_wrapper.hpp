// A decorator: forwards every call to another device and does something around it. Operators arrive
// one by one, unfused, unless a derived class accepts fused calls.
#pragma once

#include "costmodel/base/pass.hpp"
#include "runtime/backend/device.hpp"

namespace runtime {

class DeviceAround : public Device {
 public:
  // `device` outlives this.
  explicit DeviceAround(Device& device) : device_(device) {}

  Memory& memory() override { return device_.memory(); }
  Streams* streams() override { return device_.streams(); }
  void forward(const OpCall& call) final { around(Work::forward, call); }
  void cached_attention(const OpCall& call, const cpu::CachedKeys& cache) final {
    device_.cached_attention(call, cache);
  }
  void input_gradient(const OpCall& call) final { around(Work::input_gradient, call); }
  void weight_gradient(const OpCall& call) final { around(Work::weight_gradient, call); }
  void logits_maximum(const OpCall& call) final { around(Work::logits_maximum, call); }
  void logits_exponentials(const OpCall& call) final { around(Work::logits_exponentials, call); }
  void logits_loss(const OpCall& call) final { around(Work::logits_loss, call); }

 protected:
  enum class Work {
    forward,
    input_gradient,
    weight_gradient,
    logits_maximum,
    logits_exponentials,
    logits_loss
  };
  // The three parts of the cross-entropy are one forward pass.
  static constexpr costmodel::Pass pass_of(Work work) {
    if (work == Work::input_gradient) return costmodel::Pass::input_gradient;
    if (work == Work::weight_gradient) return costmodel::Pass::weight_gradient;
    return costmodel::Pass::forward;
  }

  // Receives every call; it must call through() exactly once.
  virtual void around(Work work, const OpCall& call) = 0;

  Device& inner() { return device_; }
  const Device& inner() const { return device_; }

  // Forwards the call to the wrapped device.
  void through(Work work, const OpCall& call) {
    switch (work) {
      case Work::forward: return device_.forward(call);
      case Work::input_gradient: return device_.input_gradient(call);
      case Work::weight_gradient: return device_.weight_gradient(call);
      case Work::logits_maximum: return device_.logits_maximum(call);
      case Work::logits_exponentials: return device_.logits_exponentials(call);
      case Work::logits_loss: return device_.logits_loss(call);
    }
  }

 private:
  Device& device_;
};

}  // namespace runtime
